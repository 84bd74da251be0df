package delegation

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
)

func msTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// due does what the deadlines of the row ask for.
func (t *transition) due() {
	now := t.nowMS()
	for _, x := range t.row.Tasks {
		if isOpen(x) && t.dueOf(x) <= now {
			t.askEnd(x)
		}
	}
	t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(x *delegationrow.Task) bool { return !isOpen(x) && t.dueOf(x) <= now })
	t.row.Early = slices.DeleteFunc(t.row.Early, func(x *delegationrow.Early) bool { return x.UntilMs <= now })
	t.row.Answered = slices.DeleteFunc(t.row.Answered, func(x *delegationrow.Answered) bool { return x.UntilMs <= now })
	if f := t.row.InFlight; f != nil && f.UntilMs <= now {
		t.row.InFlight = nil
		t.dispatch()
	}
}

// dueOf returns when something is to be done about a delegation, in milliseconds since the epoch.
func (t *transition) dueOf(x *delegationrow.Task) int64 {
	switch {
	case x.Phase == delegationrow.Task_OPEN:
		return x.ExpiresMs
	case x.Phase == delegationrow.Task_ENDING:
		return x.DueMs
	case x.Purged:
		return x.EndedMs + earlyFor.Milliseconds()
	default:
		return x.EndedMs + t.config.RememberFor.Milliseconds()
	}
}

// deadline returns the earliest deadline of the row in milliseconds since the epoch, 0 if it has none.
func (t *transition) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if at = max(at, 1); earliest == 0 || at < earliest {
			earliest = at
		}
	}
	for _, x := range t.row.Tasks {
		add(t.dueOf(x))
	}
	for _, x := range t.row.Early {
		add(x.UntilMs)
	}
	for _, x := range t.row.Answered {
		add(x.UntilMs)
	}
	if f := t.row.InFlight; f != nil {
		add(f.UntilMs)
	}
	return earliest
}
