package wiretest

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// WithRepeatsDropped makes the workers answer each record once, as workers do that deduplicate by id and outlive the
// pipeline. They store every turntable.id, per topic, until the driver is closed, and write nothing for a record that
// repeats one. The turntable.id of an answer is that of its record, followed by "/think" or "/result".
//
// By default the workers have no memory and answer every repeat.
func WithRepeatsDropped() DriverOption {
	return func(d *Driver) { d.answered = &answeredIDs{ids: map[string]bool{}} }
}

// answeredIDs are the IDs of the records that the workers have answered.
type answeredIDs struct {
	mu      sync.Mutex
	ids     map[string]bool
	dropped int
}

// isRepeat reports whether a record with this ID was answered before, and stores the ID.
func (s *answeredIDs) isRepeat(r *kgo.Record) bool {
	id, ok := header(r, headerID)
	if s == nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Topic + "\x00" + id
	if s.ids[key] {
		s.dropped++
		return true
	}
	s.ids[key] = true
	return false
}

func (s *answeredIDs) count() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// withAnswerID gives a worker's answer an ID that is derived from the record that it answers. Its other records get none.
func (s *answeredIDs) withAnswerID(r *kgo.Record, n Names, replies []Reply) []Reply {
	id, ok := header(r, headerID)
	if s == nil || !ok {
		return replies
	}
	for i := range replies {
		suffix, ok := map[string]string{n.Think: "/think", n.ToolUseResult: "/result"}[replies[i].Record.Topic]
		if ok {
			replies[i].Record.Headers = append(replies[i].Record.Headers,
				kgo.RecordHeader{Key: headerID, Value: []byte(id + suffix)})
			break
		}
	}
	return replies
}
