package worker

import (
	"context"
	"sync"
)

// slot is the place of a record among the records that a worker handles at a time. A record that waits for a limit gives it
// up, and takes it again when its call begins.
type slot struct {
	mark func(waiting bool) // tells the source and Health
	end  func()             // ends the record's context because the worker stops
	// confirm ends the record's context if the worker no longer holds the record.
	confirm func(ctx context.Context)

	mu      sync.Mutex
	waits   int // Enter can be called from several goroutines of a handler
	stopped bool
}

type slotKey struct{}

// waitOutsideSlot gives up the slot of ctx, if it has one, until resume is called.
func waitOutsideSlot(ctx context.Context) (resume func()) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return func() {}
	}
	s.wait(1)
	return func() { s.wait(-1) }
}

// confirmHeld returns an error if ctx is that of a record that the worker no longer holds, or has ended.
func confirmHeld(ctx context.Context) error {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok && ctx.Err() == nil {
		s.confirm(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (s *slot) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.waits > 0
	s.waits += n
	if after := s.waits > 0; after != before {
		s.mark(after)
	}
	s.stopWaiting()
}

// stop ends the record's context if the record waits, now or later: a worker that stops begins no call.
func (s *slot) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.stopWaiting()
}

func (s *slot) stopWaiting() {
	if s.stopped && s.waits > 0 {
		s.end()
	}
}
