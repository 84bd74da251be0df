package delivery

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
)

// apply expires routes, early outputs, dead deliveries and the row itself. advance, which apply calls after every event, handles the
// deadlines of open deliveries.
func (deadlineCame) apply(t *transition) {
	t.expireRoutes()
	n := len(t.row.Dead)
	t.row.Dead = slices.DeleteFunc(t.row.Dead, func(d *deliveryrow.Delivery) bool { return d.DueMs <= t.nowMS() })
	t.changed = t.changed || len(t.row.Dead) != n
	if at, ok := t.idleEnd(); ok && at <= t.nowMS() {
		t.changed, t.erased = true, true
	}
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}

// deadline returns the earliest deadline of the row in milliseconds since the epoch, 0 if it has none.
func (t *transition) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	for _, d := range t.row.Open {
		switch {
		case d.Phase == deliveryrow.Phase_PHASE_IN_FLIGHT:
			add(d.DueMs)
		case t.blocked(d):
			add(d.ExpiresMs)
		default:
			add(min(d.DueMs, d.ExpiresMs))
		}
	}
	for _, d := range t.row.Dead {
		add(d.DueMs)
	}
	for _, r := range t.row.Routes {
		add(r.ExpiresMs)
	}
	for _, o := range t.row.Early {
		add(o.ExpiresMs)
	}
	if at, ok := t.idleEnd(); ok {
		add(at)
	}
	return earliest
}

// idleEnd returns when a row that holds only digests is deleted. ok is false for any other row.
func (t *transition) idleEnd() (at int64, ok bool) {
	if len(t.row.Open)+len(t.row.Dead)+len(t.row.Routes)+len(t.row.Early) > 0 {
		return 0, false
	}
	return t.row.TouchedMs + t.config.RememberFor.Milliseconds(), true
}
