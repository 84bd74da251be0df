package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// due does what is due at the time of the step, whatever its input is.
func (w *work) due() {
	w.expireHolds()
	w.confirmDue()
	w.lost()
	w.fireTimers()
	w.forget()
}

// deadline is when something is due next, 0 if nothing is.
func (w *work) deadline() (next int64) {
	earliest := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for _, h := range w.Holds {
		earliest(h.UntilMs)
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && len(w.Holds) == 0 {
			earliest(d.ConfirmMs)
		}
	}
	for _, m := range w.Roster.Members {
		switch {
		case !view.Ended(m.Status):
		case w.working(m):
			earliest(m.EndedMs + lostAfter.Milliseconds())
		default:
			earliest(m.EndedMs + forgetAfter.Milliseconds())
		}
	}
	for _, d := range w.Duties {
		earliest(d.NudgeMs)
	}
	for _, t := range w.Timers {
		earliest(t.DueMs)
	}
	earliest(w.Refresh.DeadlineMS())
	return next
}
