package memoir

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// apply ends the open passes whose time is over, and deletes a row that has nothing but digests. sendNext, which apply calls after
// every event, sends the sessions whose wait is over.
func (d deadlineCame) apply(t *transition) {
	if t.row.Version == 0 {
		return // there is no row
	}
	for _, p := range slices.Clone(t.row.Pending) {
		if isOpen(p) && p.DueMs <= machine.Through(d.read, t.now) {
			t.unanswered(p, failedTimeout)
		}
	}
	t.endAbandoned()
	t.dropDue()
	if at, ok := t.idleEnd(); ok && at <= t.nowMS() {
		t.changed, t.erased = true, true
	}
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = true
}

// deadline returns the earliest deadline of the row in milliseconds since the epoch, 0 if it has none.
func (t *transition) deadline() (earliest int64) {
	open, current := t.load()
	for _, p := range t.row.Pending {
		at, ok := nextPending(p, open, current)
		if isOpen(p) {
			at, ok = p.DueMs, true
		}
		if ok && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	if at := t.row.AbandonedUntilMs; at != 0 && (earliest == 0 || at < earliest) {
		earliest = at
	}
	for _, p := range t.row.Settled {
		if earliest == 0 || p.DueMs < earliest {
			earliest = p.DueMs
		}
	}
	if at, ok := t.idleEnd(); ok {
		return at
	}
	return earliest
}

// idleEnd returns when a row without a memory is deleted. ok is false for any other row.
func (t *transition) idleEnd() (at int64, ok bool) {
	if t.row.Memory != "" || len(t.row.Pending)+len(t.row.Settled) > 0 || t.row.Abandoned > 0 {
		return 0, false
	}
	return t.row.TouchedMs + t.config.RememberFor.Milliseconds(), true
}
