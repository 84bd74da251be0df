package transport

import (
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxTasks is how many tasks are remembered at least.
	maxTasks = 10_000
	// maxReplies bounds the answers that are kept, in bytes. A call for an attempt without its answer is a repeated one.
	maxReplies = 32 << 20
	// cancelTime is for how long a cancel applies to attempts that begin after it.
	cancelTime = 15 * time.Minute
	// sweepTime is the time between two searches for what can be forgotten.
	sweepTime = 10 * time.Second
)

// memory has the attempts of this process until their leases end. The zero value is empty. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	tasks map[string]*task // by delivery ID
	bytes int              // of known answers
	swept time.Time
}

// task is what is remembered of a task.
type task struct {
	attempts map[int64]*entry // by number
	// cancelled is the number of the cancel, 0 for none. Attempts with a smaller number are not made until then.
	cancelled int64
	until     time.Time
}

// entry is an attempt.
type entry struct {
	until time.Time // the end of its lease
	// repeated says that an earlier call may have sent the request. Only the call that owns the entry uses it.
	repeated bool
	end      context.CancelCauseFunc // of the call that makes the attempt; guarded by memory.mu
	gone     bool                    // cancelled; guarded by memory.mu

	done chan struct{} // closed when the attempt has ended; outcome and known are set before
	// known says that outcome is what the peer answered. It is not if the call was interrupted.
	known   bool
	outcome outcome
}

// begin returns the entry of an attempt, nil if it is cancelled. mine says that the caller makes the attempt, and must call finish.
// Otherwise another call makes it, or has made it.
func (m *memory) begin(d topics.Delivery, now time.Time) (e *entry, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.task(d.DeliveryID, now)
	old, ok := t.attempts[d.Attempt]
	switch {
	case ok && (!old.ended() || old.known):
		return old, false
	case d.Attempt < t.cancelled:
		return nil, false
	}
	e = &entry{until: time.UnixMilli(d.LeaseUntilMS), repeated: ok && old.outcome.answer.Reached, done: make(chan struct{})}
	t.attempts[d.Attempt] = e
	return e, true
}

// task returns a task, and forgets what can be forgotten.
func (m *memory) task(id string, now time.Time) *task {
	m.sweep(now)
	t, ok := m.tasks[id]
	if !ok {
		t = &task{attempts: map[int64]*entry{}}
		m.tasks[id] = t
	}
	return t
}

// start says how the attempt is ended. It reports false if it is cancelled already.
func (m *memory) start(e *entry, end context.CancelCauseFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.end = end
	return !e.gone
}

// finish stores how an attempt ended.
func (m *memory) finish(e *entry, o outcome, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known && m.bytes+o.size() <= maxReplies {
		m.bytes += o.size()
		e.known = true
	}
	e.outcome, e.end = o, nil
	if !e.known {
		e.outcome.answer.Reply = nil
	}
	close(e.done)
}

// cancel ends the running attempts of a task with a smaller number than that of the cancel, and returns them.
func (m *memory) cancel(d topics.Delivery, now time.Time) (running []*entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.task(d.DeliveryID, now)
	t.cancelled, t.until = max(t.cancelled, d.Attempt), now.Add(cancelTime)
	for number, e := range t.attempts {
		if number >= d.Attempt || e.ended() {
			continue
		}
		e.gone = true
		if e.end != nil {
			e.end(errCancelled)
		}
		running = append(running, e)
	}
	return running
}

// sweep forgets ended attempts whose lease has ended, and cancels that no longer apply: every sweepTime, or if there are too
// many tasks. If too many are left, it forgets half of them, but no running attempt.
func (m *memory) sweep(now time.Time) {
	if m.tasks == nil {
		m.tasks = map[string]*task{}
	}
	if len(m.tasks) < 2*maxTasks && now.Sub(m.swept) < sweepTime && !now.Before(m.swept) {
		return
	}
	m.swept = now
	m.forget(now, 0)
	if len(m.tasks) >= 2*maxTasks {
		m.forget(now.Add(forever), maxTasks)
	}
}

// forever is longer than any lease.
const forever = 100 * 365 * 24 * time.Hour

// forget deletes what does not apply at a time any more, until few tasks are left.
func (m *memory) forget(at time.Time, few int) {
	for id, t := range m.tasks {
		if len(m.tasks) <= few {
			return
		}
		for number, e := range t.attempts {
			if !e.ended() || at.Before(e.until) {
				continue
			}
			if e.known {
				m.bytes -= e.outcome.size()
			}
			delete(t.attempts, number)
		}
		if len(t.attempts) == 0 && !at.Before(t.until) {
			delete(m.tasks, id)
		}
	}
}

// ended reports whether done is closed.
func (e *entry) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
