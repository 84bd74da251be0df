package consumer

import (
	"sync"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// status is what a source reports. It is safe for concurrent use.
type status struct {
	mu      sync.Mutex
	member  bool
	stopped bool
	err     error
}

func (s *status) joined(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = yes
}

func (s *status) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

func (s *status) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *status) get() source.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return source.Status{Joined: s.member && !s.stopped, Err: s.err}
}

// lag returns how many records wait in the partitions of this member.
func (m *member) lag() map[string]map[int32]int64 {
	lag := map[string]map[int32]int64{}
	for _, p := range m.all() {
		p.mu.Lock()
		if p.claim != nil {
			if lag[p.topic] == nil {
				lag[p.topic] = map[int32]int64{}
			}
			lag[p.topic][p.id] = p.state.Lag(p.claim.messages.HighWaterMarkOffset())
		}
		p.mu.Unlock()
	}
	return lag
}
