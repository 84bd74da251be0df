package invoke

import (
	"container/list"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// turnIndex is a table of the turns that began lately, by session: where their records are, and which requests were
// accepted. A request for a turn is answered from it, so that only the records between a turn's first and last one are read,
// and nothing is read for a turn that does not exist. It is bounded. It does no I/O and is not safe for concurrent use.
type turnIndex struct {
	lookback   time.Duration
	perSession int // maximum number of turns of a session
	total      int // maximum number of turns
	sessions   map[string][]*indexedTurn
	recent     *list.List // of *indexedTurn; the one without a record for the longest time first
}

// indexedTurn is a turn of a session. All records that the index has seen are between first and last.
type indexedTurn struct {
	session   string
	turn      string // empty until the index has seen a record of the turn
	request   string // ID of the request that the turn answers, if a record names it
	partition int32
	first     int64     // offset of the first record; -1 if there is none
	last      int64     // offset of the last record
	end       *turnEnd  // nil: the index has no batch of it
	began     time.Time // when the message or the first record was written, whichever is earlier
	touched   time.Time // when the last of them was written
	failed    *topics.Output
	place     *list.Element
}

func newTurnIndex(lookback time.Duration, perSession, total int) *turnIndex {
	return &turnIndex{
		lookback: lookback, perSession: perSession, total: total, sessions: map[string][]*indexedTurn{}, recent: list.New(),
	}
}

// sighting is what one record states about a turn.
type sighting struct {
	session   string
	turn      string // empty for a message or an output
	request   string // empty if the record names none
	partition int32
	offset    int64
	at        time.Time
	end       *turnEnd       // of a batch message
	ifBegun   bool           // the record says nothing of a turn without another one
	failed    *topics.Output // of an output with an error
}

// add adds what a record states. Records can be added in any order and repeatedly.
func (x *turnIndex) add(s sighting, now time.Time) {
	if s.at.After(now) {
		s.at = now // a producer's clock that is ahead must not keep the turn in the index
	}
	if s.turn == "" && s.request == "" || !s.at.After(now.Add(-x.lookback)) && x.find(s.session, s.turn) == nil {
		return
	}
	if s.ifBegun && x.match(s.session, func(t *indexedTurn) bool { return t.turn == s.turn }) == nil {
		return
	}
	t := x.place(s)
	if t.began.IsZero() || s.at.Before(t.began) {
		t.began = s.at
	}
	if s.at.After(t.touched) {
		t.touched = s.at
	}
	switch {
	case s.turn == "":
		if s.failed != nil {
			t.failed = s.failed
		}
	case s.end != nil:
		if t.turn = s.turn; t.end == nil || s.end.offset < t.end.offset {
			t.end = s.end
		}
	case t.first < 0:
		t.turn, t.partition, t.first, t.last = s.turn, s.partition, s.offset, s.offset
	case t.partition == s.partition:
		t.first, t.last = min(t.first, s.offset), max(t.last, s.offset)
	}
	x.recent.MoveToBack(t.place)
	x.expire(now)
}

// place returns the turn of a record and adds it if it is new.
func (x *turnIndex) place(s sighting) *indexedTurn {
	if s.turn == "" {
		if t := x.find(s.session, s.request); t != nil {
			return t
		}
		return x.insert(s)
	}
	t, waiting := x.match(s.session, func(t *indexedTurn) bool { return t.turn == s.turn }), x.waiting(s.session, s.request)
	switch {
	case t == nil:
		if t = x.waiting(s.session, s.turn); t == nil {
			t = waiting
		}
		if t == nil {
			t = x.insert(s)
		}
	case s.request != "" && t.request == "":
		t.request = s.request
		if waiting != nil {
			t.began, t.failed = earlier(t.began, waiting.began), waiting.failed
			x.remove(waiting)
		}
	}
	return t
}

// waiting returns a request without a turn; nil if there is none.
func (x *turnIndex) waiting(session, request string) *indexedTurn {
	return x.match(session, func(t *indexedTurn) bool { return t.turn == "" && request != "" && t.request == request })
}

// match returns the last turn of a session that matches; nil if there is none.
func (x *turnIndex) match(session string, matches func(*indexedTurn) bool) *indexedTurn {
	for _, t := range slices.Backward(x.sessions[session]) { // nearly always the last one
		if matches(t) {
			return t
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (x *turnIndex) insert(s sighting) *indexedTurn {
	t := &indexedTurn{session: s.session, turn: s.turn, request: s.request, partition: -1, first: -1, last: -1}
	t.place = x.recent.PushBack(t)
	x.sessions[s.session] = append(x.sessions[s.session], t)
	if turns := x.sessions[s.session]; len(turns) > x.perSession {
		x.remove(turns[0])
	}
	if x.recent.Len() > x.total {
		x.remove(x.recent.Front().Value.(*indexedTurn))
	}
	return t
}

// find returns a session's turn by its ID or by that of its request; nil if there is none. A turn's own ID takes precedence;
// if several turns name the request, the first one counts.
func (x *turnIndex) find(session, id string) *indexedTurn {
	if id == "" {
		return nil
	}
	var named *indexedTurn
	for _, t := range slices.Backward(x.sessions[session]) {
		if t.turn == id {
			return t
		}
		if t.request == id && (named == nil || t.turn != "") {
			named = t
		}
	}
	return named
}

// expire removes the turns without a record within the look-back.
func (x *turnIndex) expire(now time.Time) {
	for e := x.recent.Front(); e != nil; e = x.recent.Front() {
		t := e.Value.(*indexedTurn)
		if t.touched.After(now.Add(-x.lookback)) {
			return
		}
		x.remove(t)
	}
}

func (x *turnIndex) remove(t *indexedTurn) {
	x.recent.Remove(t.place)
	turns := slices.DeleteFunc(x.sessions[t.session], func(o *indexedTurn) bool { return o == t })
	if x.sessions[t.session] = turns; len(turns) == 0 {
		delete(x.sessions, t.session)
	}
}
