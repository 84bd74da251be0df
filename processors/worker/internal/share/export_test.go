package share

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Acquire passes a record to handle as a session does that has acquired it by a fetch which was sent at the given time. It
// returns when handle has returned, and reports whether the record was kept and used a slot.
func Acquire(handle source.Handle, sent time.Time, lock time.Duration) (kept, used bool) {
	m := &member{
		Source: New(Config{Config: source.Config{Logger: zap.NewNop()}}), handle: handle, limit: defaultLimit,
		held: map[place]*held{},
	}
	s := &session{member: m}
	used = s.start(place{}, acquired{count: 1}, true, sent, lock)
	m.mu.Lock()
	kept = len(m.held) > 0
	m.mu.Unlock()
	m.handlers.Wait()
	return kept, used
}

// Suspend passes a record to handle as a process does that was suspended until the lock had expired, and whose timers have
// not run since. It returns when handle has returned.
func Suspend(handle source.Handle) {
	m := &member{
		Source: New(Config{Config: source.Config{Logger: zap.NewNop()}}), limit: defaultLimit, held: map[place]*held{},
	}
	m.handle = func(ctx context.Context, d source.Delivery) source.Verdict {
		m.mu.Lock()
		for _, h := range m.held {
			h.expiry.Stop()
			h.deadline = time.Now()
		}
		m.mu.Unlock()
		return handle(ctx, d)
	}
	(&session{member: m}).start(place{}, acquired{count: 1}, true, time.Now(), time.Hour)
	m.handlers.Wait()
}
