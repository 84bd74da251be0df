package peerhttp

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/peer"
)

// slots bounds the tasks of peers that run for requests of this process: for each token, and for all. A request takes a slot
// before its body is read, and a task keeps it when the request is answered before the task has ended. It is safe for
// concurrent use. There are never more slots than settings.MaxConcurrent, so it looks at all of them.
type slots struct {
	clock processors.Clock

	mu    sync.Mutex
	taken map[*slot]struct{}
	spare map[[sha256.Size]byte]int // requests without a slot, by token
}

func newSlots(c processors.Clock) *slots {
	return &slots{clock: c, taken: map[*slot]struct{}{}, spare: map[[sha256.Size]byte]int{}}
}

// running identifies what a slot is for: a task and the hash of its request. It is the zero value until the body was read.
type running struct{ inboundID, taskID, hash string }

// slot is a place of one task. The lock of slots protects it.
type slot struct {
	token   [sha256.Size]byte
	running running
	users   int       // requests
	until   time.Time // when the task has ended at the latest; zero if only its requests hold the slot
	ended   bool      // the task has ended
	spare   bool      // it is none: the request needs the slot of its task
}

// lease is a request's part of a slot. One goroutine uses it.
type lease struct {
	slots *slots
	slot  *slot // nil once the request has given it back
}

// acquire takes a slot for a request; nil if there is none for the token, or none at all. As many requests as the token has tasks
// get a lease without a slot, which is for a repeated request: a dispatcher that restarts repeats all of them.
func (s *slots) acquire(in peer.Inbound, all int) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, tasks, now := 0, 0, s.clock.Now()
	for t := range s.taken {
		if t.users == 0 && !now.Before(t.until) {
			delete(s.taken, t)
			continue
		}
		if t.token == in.TokenSHA256 {
			own++
			if t.running != (running{}) {
				tasks++
			}
		}
	}
	if len(s.taken) >= all || own >= in.MaxConcurrent {
		if s.spare[in.TokenSHA256] >= tasks {
			return nil
		}
		s.spare[in.TokenSHA256]++
		return &lease{s, &slot{token: in.TokenSHA256, users: 1, spare: true}}
	}
	t := &slot{token: in.TokenSHA256, users: 1}
	s.taken[t] = struct{}{}
	return &lease{s, t}
}

// bind says which task the request is for. If the task has a slot already, the request shares it. It reports false if the task
// has none, and the request neither.
func (l *lease) bind(r running) bool {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	for t := range l.slots.taken {
		if t != l.slot && t.running == r && t.token == l.slot.token && !t.ended {
			t.users++
			l.release()
			l.slot = t
			return true
		}
	}
	if l.slot.spare {
		return false
	}
	l.slot.running = r
	return true
}

// spare reports whether the lease has no slot: it is for a request that repeats a task.
func (l *lease) spare() bool {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	return l.slot.spare
}

// keep gives the request's part back, and leaves the slot to the task until it ends, at the latest until a time.
func (l *lease) keep(until time.Time) {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	if l.slot == nil {
		return
	}
	if !l.slot.ended && until.After(l.slot.until) {
		l.slot.until = until
	}
	l.release()
}

// end gives the request's part back. It may be called again, and after keep.
func (l *lease) end() {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	if l.slot != nil {
		l.release()
	}
}

func (l *lease) release() {
	switch l.slot.users--; {
	case l.slot.spare:
		if l.slots.spare[l.slot.token]--; l.slots.spare[l.slot.token] == 0 {
			delete(l.slots.spare, l.slot.token)
		}
	case l.slot.users == 0 && l.slot.until.IsZero():
		delete(l.slots.taken, l.slot)
	}
	l.slot = nil
}

// ended says that a task has ended. Requests that still hold its slot keep it until they are answered.
func (s *slots) ended(r running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.taken {
		if t.running != r {
			continue
		}
		t.ended, t.until = true, time.Time{}
		if t.users == 0 {
			delete(s.taken, t)
		}
	}
}

// len returns how many slots are taken.
func (s *slots) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}
