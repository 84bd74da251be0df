package gate

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// apply expires held records, outcomes, grants and the row itself. closeDue, which apply calls after every event, handles
// the deadlines of open gates.
func (deadlineCame) apply(t *transition) {
	t.expireEarly()
	t.row.Closed = slices.DeleteFunc(t.row.Closed, func(g *gaterow.Gate) bool { return t.outcomeEnd(g) <= t.nowMS() })
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(g *gaterow.Grant) bool { return expired(g, t.nowMS()) })
	if at, ok := t.idleEnd(); ok && at <= t.nowMS() {
		t.changed, t.erased = true, true
	}
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}

// closeDue asks to close the gates that have expired, and those whose close was asked for but was not read.
func (t *transition) closeDue() {
	for _, g := range t.row.Open {
		if g.DueMs > t.nowMS() {
			continue
		}
		cause := topics.GateCause(g.Closing)
		if cause == "" || cause == topics.CauseGrant && g.ExpiresMs <= t.nowMS() {
			cause = topics.CauseDeadline
		}
		g.Closing = ""
		t.askClose(g, cause, g.ClosingBy)
	}
}

// askClose writes the record that ends a gate, unless one is on its way. One for a grant does not count: it need not end the
// gate.
func (t *transition) askClose(g *gaterow.Gate, cause topics.GateCause, by string) {
	if g.Closing != "" && (g.Closing != string(topics.CauseGrant) || cause == topics.CauseGrant) {
		return
	}
	t.changed = true
	g.Closing, g.ClosingBy, g.DueMs = string(cause), by, t.now.Add(closeAgain).UnixMilli()
	id := g.Id + "/close/" + string(cause)
	machine.Emit(&t.Effects, t.topics.GateDecisions, t.key, id, topics.GateDecision{
		GateID: g.Id, SessionID: t.key, DecisionID: id, Verdict: topics.VerdictClose, Cause: cause, By: by, Via: via,
	})
}

// via is the name of this package in the records that it writes.
const via = "gate"

// deadline returns the earliest deadline of the row in milliseconds since the epoch, 0 if it has none.
func (t *transition) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if at != 0 && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	for _, g := range t.row.Open {
		add(max(g.DueMs, 1))
	}
	for _, h := range t.row.Early {
		add(h.ExpiresMs)
	}
	for _, g := range t.row.Closed {
		add(t.outcomeEnd(g))
	}
	for _, g := range t.row.Grants {
		add(g.ExpiresMs)
	}
	if at, ok := t.idleEnd(); ok {
		add(at)
	}
	return earliest
}

// outcomeEnd returns until when the outcome of a gate is kept, in milliseconds since the epoch.
func (t *transition) outcomeEnd(g *gaterow.Gate) int64 {
	return g.Outcome.GetAtMs() + t.config.RememberFor.Milliseconds()
}

// idleEnd returns when a row that holds only digests is deleted. ok is false for any other row.
func (t *transition) idleEnd() (at int64, ok bool) {
	if len(t.row.Open)+len(t.row.Closed)+len(t.row.Early)+len(t.row.Grants) > 0 {
		return 0, false
	}
	return t.row.TouchedMs + t.config.RememberFor.Milliseconds(), true
}
