package migrate

import (
	"math"

	"github.com/turntable-streams/turntable/topics"
)

// place is where a record is.
type place struct {
	partition int32
	offset    int64
}

// index says which records the sessions' histories are made of. It has about 200 bytes for each session, because the topic
// of all sessions may not fit into memory: the records are read again when the histories are needed.
type index struct {
	sessions map[string]session
	// keepEnded keeps what ended sessions need to be found.
	keepEnded bool
}

// session is what is known of a session.
type session struct {
	at   int64   // the timestamp of the latest record, in milliseconds since the epoch
	cost float64 // NaN if unknown
	// answer is the offset of the record with the history, negative if there is none. If more is not nil, several records
	// have it.
	answer    int64
	more      *several
	partition int32 // of answer
	latest    int32 // the partition of the latest record
	ended     bool
}

// several are the records of a session whose records have one exchange each.
type several struct {
	answered []place // up to the last answer
	open     []place // after it: a turn without an answer
}

func newIndex() *index { return &index{sessions: map[string]session{}} }

// add takes the next record of a partition: at is its timestamp in milliseconds since the epoch.
//
// All records of a session should be in one partition. Clients with another partitioner than Java's divide a session between
// two, and then the timestamps decide which record is the latest.
func (x *index) add(key string, p place, at int64, r topics.ThinkResponse) {
	s, known := x.sessions[key]
	switch {
	case known && s.latest != p.partition && at < s.at, isErrorReport(r):
		return
	case !known || s.ended:
		s = session{cost: math.NaN(), answer: -1}
	}
	var before *float64
	if !math.IsNaN(s.cost) {
		before = &s.cost
	}
	if after := costAfter(before, r); after != nil {
		s.cost = *after
	}
	s.at, s.latest = at, p.partition
	switch {
	case appends(r):
		s.append(p, continues(r), answers(r))
	case answers(r):
		s.answer, s.partition, s.more = p.offset, p.partition, nil
	case s.more != nil:
		s.more.open = nil
	}
	x.sessions[key] = s
}

// append adds a record with one exchange.
func (s *session) append(p place, continued, answered bool) {
	if s.more == nil {
		s.more = &several{}
		if s.answer >= 0 {
			s.more.answered = []place{{s.partition, s.answer}}
		}
	}
	m := s.more
	if !continued {
		m.open = nil // the turn before it was not answered
	}
	m.open = append(m.open, p)
	if answered {
		m.answered, m.open = append(m.answered, m.open...), nil
		s.answer, s.partition = p.offset, p.partition
	}
}

// remove takes the tombstone of a session.
func (x *index) remove(key string, p place, at int64) {
	s, known := x.sessions[key]
	switch {
	case known && s.latest != p.partition && at < s.at:
	case x.keepEnded:
		x.sessions[key] = session{
			at: at, cost: math.NaN(), answer: p.offset, partition: p.partition, latest: p.partition, ended: true,
		}
	default:
		delete(x.sessions, key)
	}
}

// places returns the records of the session's history, in order.
func (s session) places() []place {
	switch {
	case s.ended || s.answer < 0:
		return nil
	case s.more != nil:
		return s.more.answered
	default:
		return []place{{s.partition, s.answer}}
	}
}

// needs returns the position of a record in its session's history, and the number of records in it; ok is false if the
// record is not one of them. It allocates nothing, because it is called for every record of the topic.
func (x *index) needs(key string, p place) (i, n int, ok bool) {
	s, known := x.sessions[key]
	switch {
	case !known || s.ended || s.answer < 0:
		return 0, 0, false
	case s.more == nil:
		return 0, 1, p == place{s.partition, s.answer}
	}
	for i, at := range s.more.answered {
		if at == p {
			return i, len(s.more.answered), true
		}
	}
	return 0, 0, false
}

// knownCost returns the session's cost, nil if it is unknown.
func (s session) knownCost() *float64 {
	if math.IsNaN(s.cost) {
		return nil
	}
	return &s.cost
}
