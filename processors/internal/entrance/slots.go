package entrance

import (
	"container/list"
	"context"
	"sync"
)

// Slots limits how many pieces of scarce work, such as reads from topics, run at the same time. A caller with many requests
// delays its own requests, and those of other callers by at most one turn each. When all slots are taken, the callers that wait take turns:
// each gets one slot, in the order in which they began to wait, before one of them gets a second. Keep the work of a slot
// short, because a slot is not taken away from its holder. Create Slots with NewSlots. The methods are safe for concurrent
// use.
type Slots struct {
	mu      sync.Mutex
	free    int
	callers map[string]*list.Element // of turns
	turns   *list.List               // of *queue: the callers that wait, the next one first
}

// queue holds the requests of a caller that wait, the first one first. Each channel is closed when its request gets a slot.
type queue struct {
	caller  string
	waiting *list.List // of chan struct{}
}

// NewSlots returns n slots. n is at least 1.
func NewSlots(n int) *Slots {
	return &Slots{free: n, callers: map[string]*list.Element{}, turns: list.New()}
}

// Acquire takes a slot for a caller. It blocks until the slot is free or ctx is done, and returns ctx.Err() then. Call
// Release once after Acquire has returned nil.
func (s *Slots) Acquire(ctx context.Context, caller string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	turn := s.callers[caller]
	if turn == nil {
		turn = s.turns.PushBack(&queue{caller, list.New()})
		s.callers[caller] = turn
	}
	place := turn.Value.(*queue).waiting.PushBack(granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted: // at the same time
		s.release()
	default:
		s.remove(turn, place)
	}
	return ctx.Err()
}

// Release returns a slot.
func (s *Slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release passes a slot to the next caller. The caller of release and remove holds the lock.
func (s *Slots) release() {
	turn := s.turns.Front()
	if turn == nil {
		s.free++
		return
	}
	place := turn.Value.(*queue).waiting.Front()
	close(place.Value.(chan struct{}))
	s.turns.MoveToBack(turn)
	s.remove(turn, place)
}

func (s *Slots) remove(turn, place *list.Element) {
	q := turn.Value.(*queue)
	q.waiting.Remove(place)
	if q.waiting.Len() == 0 {
		s.turns.Remove(turn)
		delete(s.callers, q.caller)
	}
}
