package peer

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
)

// Bounds of what the row keeps about tasks.
const (
	// taskReserve is the room that a task may need after it was added, for what has a bounded size.
	taskReserve = 256
	// recordReserve is what a record has beside a request or a reply: IDs, key and headers.
	recordReserve = 16 << 10
	// maxKept is the largest reply that is kept. The reply to a call is in the turn as well.
	maxKept       = 512 << 10
	maxKeptOfCall = 64 << 10
	// maxEnded is how many tasks that have ended are kept.
	maxEnded = 256
)

// tasksDue does what is due.
func (t *transition) tasksDue() {
	for _, x := range slices.Clone(t.row.Tasks) {
		if t.taskDue(x) > t.nowMS() {
			continue
		}
		t.changed = true
		switch x.Phase {
		case peerrow.Task_PENDING:
			t.attempt(x)
		case peerrow.Task_ATTEMPT: // no receipt came
			x.Reached = true
			t.attempt(x)
		case peerrow.Task_SETTLING:
			x.DueMs = t.now.Add(writeAgain).UnixMilli()
			t.emitSettle(x, x.Outcome)
		default:
			t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(o *peerrow.Task) bool { return o == x })
		}
	}
}

// taskDue returns when something is due for a task, in milliseconds since the epoch.
func (t *transition) taskDue(x *peerrow.Task) int64 {
	switch x.Phase {
	case peerrow.Task_PENDING:
		return min(x.DueMs, x.ExpiresMs)
	case peerrow.Task_SETTLED:
		return x.SettledMs + t.config.RememberFor.Milliseconds()
	default:
		return x.DueMs
	}
}

func (t *transition) taskDeadlines(add func(int64)) {
	for _, x := range t.row.Tasks {
		add(t.taskDue(x))
	}
}

// forgetTask makes room: it forgets how a task ended, or the whole task. Old tasks are forgotten first, and last those whose end
// was read first, because their calls are answered with it. It reports whether it forgot anything.
func (t *transition) forgetTask() bool {
	for _, early := range []bool{false, true} {
		for _, x := range t.row.Tasks {
			if !isOpen(x) && isEarly(x) == early && x.Outcome != nil {
				x.Outcome, t.changed = nil, true
				return true
			}
		}
		if i := slices.IndexFunc(t.row.Tasks, func(x *peerrow.Task) bool { return !isOpen(x) && isEarly(x) == early }); i >= 0 {
			t.row.Tasks, t.changed = slices.Delete(t.row.Tasks, i, i+1), true
			return true
		}
	}
	return false
}

// taskReserves returns the room that open tasks may need.
func (t *transition) taskReserves() int { return t.openTasks() * taskReserve }

// timeoutOf returns how long an attempt may take whose request does not say it.
func timeoutOf(o Outbound) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

func msTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
