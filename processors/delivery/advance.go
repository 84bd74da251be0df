package delivery

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// advance does what is due in the row: it emits attempts, and ends leases, waits and expired deliveries. Only a deadline ends
// something: while a record is handled, one that would end it otherwise may not be read yet, for example a receipt. It visits the
// deliveries in the order in which they were opened, because only the first delivery of an ordered route may be attempted.
func (t *transition) advance() {
	for _, d := range slices.Clone(t.row.Open) {
		switch {
		case d.Phase == deliveryrow.Phase_PHASE_IN_FLIGHT:
			if d.DueMs <= t.due {
				t.endLease(d)
			}
		case t.blocked(d):
			if d.ExpiresMs <= t.due {
				t.markDead(d, reasonExpired)
			}
		case d.Phase == deliveryrow.Phase_PHASE_ROUTE:
			if min(d.DueMs, d.ExpiresMs) <= t.due {
				t.markDead(d, reasonNoRoute)
			}
		default:
			t.attemptIfDue(d)
		}
	}
}

// blocked reports whether an earlier delivery to the same ordered service is open.
func (t *transition) blocked(d *deliveryrow.Delivery) bool {
	if !t.config.serviceOf(routeOf(d)).Ordered {
		return false
	}
	for _, earlier := range t.row.Open {
		if earlier == d {
			return false
		}
		if routeOf(earlier) == routeOf(d) {
			return true
		}
	}
	return false
}

// attemptIfDue emits the next attempt of a pending delivery, if it is due and its route accepts attempts.
func (t *transition) attemptIfDue(d *deliveryrow.Delivery) {
	if d.ExpiresMs <= t.due {
		t.markDead(d, reasonExpired)
		return
	}
	if d.DueMs > t.nowMS() || d.ExpiresMs <= t.nowMS() {
		return
	}
	service := t.config.serviceOf(routeOf(d))
	if d.StartedMs == 0 {
		d.StartedMs = t.nowMS()
	}
	if t.nowMS() >= t.budgetEnd(d) {
		if t.due != 0 {
			t.markDead(d, budgetReason(d))
		}
		return
	}
	t.changed = true
	switch gate := t.routes(routeOf(d).Key()); {
	case gate.OpenUntilMS > t.nowMS():
		// The waiting deliveries are spread over as long again after the circuit half-opens, so that the first of them
		// shows whether the receiver is back before the others are attempted.
		rest := time.Duration(gate.OpenUntilMS-t.nowMS()) * time.Millisecond
		d.DueMs = min(t.after(rest+t.jitter(d, "circuit", rest)), t.budgetEnd(d), d.ExpiresMs)
		d.HeldBack = true
		return
	case gate.InFlight >= int64(service.InFlight):
		t.postpone(d, t.nowMS())
		return
	}
	t.emitAttempt(d)
}

// emitAttempt emits the record of the next attempt.
func (t *transition) emitAttempt(d *deliveryrow.Delivery) {
	notBefore := d.DueMs
	d.Attempt++
	d.Phase, d.DueMs, d.EmittedMs = deliveryrow.Phase_PHASE_IN_FLIGHT, t.after(t.leaseOf(d)), t.nowMS()
	d.Lost, d.HeldBack = false, false
	machine.Emit(&t.Effects, t.topics.Deliveries, t.key, outputID(d.Id, "attempt", d.Attempt), topics.Delivery{
		DeliveryID: d.Id, SessionID: t.key, TurnID: d.TurnId, RequestID: d.RequestId, Route: routeOf(d), Token: d.Token,
		Body: d.Body, CreatedMS: d.CreatedMs, ExpiresMS: d.ExpiresMs, Attempt: int64(d.Attempt),
		NotBeforeMS: notBefore, LeaseUntilMS: d.DueMs, Channel: rawOf(d.Channel), Progress: rawOf(d.Progress),
	})
}

// longestLease is how many times Config.Lease a lease may last.
const longestLease = 15

// leaseOf returns how long the next attempt may take until its receipt. It doubles with every attempt in a row that was
// lost, so that a sink that is down for a day does not use up the attempts of a delivery.
func (t *transition) leaseOf(d *deliveryrow.Delivery) time.Duration {
	lost := uint32(0)
	for i := len(d.Failures); i > 0 && d.Failures[i-1].Reason == reasonLost; i-- {
		lost++
	}
	return retry.Bound(t.config.Lease, longestLease*t.config.Lease, lost+1)
}

// endLease retries a delivery whose attempt has no receipt at the end of its lease. The lost attempt counts as a failure
// but its time does not count against the budget: otherwise a sink that is down would use up the budget of deliveries
// that it never attempted.
func (t *transition) endLease(d *deliveryrow.Delivery) {
	t.changed = true
	t.recordFailure(d, reasonLost, 0)
	d.CreditMs += t.nowMS() - d.EmittedMs
	d.Phase, d.DueMs, d.Lost = deliveryrow.Phase_PHASE_PENDING, t.nowMS(), true
	if t.attemptsSpent(d) {
		t.markDead(d, reasonAttempts)
		return
	}
	t.attemptIfDue(d)
}
