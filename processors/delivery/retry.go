package delivery

import (
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
)

// postpone lets a delivery wait because its route had no room since sinceMS. The waits grow. Neither the wait nor the
// time since sinceMS counts against the budget.
func (t *transition) postpone(d *deliveryrow.Delivery, sinceMS int64) {
	t.changed = true
	d.Deferrals++
	service := t.config.serviceOf(routeOf(d))
	upper := retry.Bound(min(service.Initial, firstDeferral), service.Longest, d.Deferrals)
	// At least half of the bound, so that attempts in flight can end.
	due := t.after(max(upper/2+t.jitter(d, "deferral", upper/2), minWait))
	d.CreditMs += due - sinceMS
	d.Phase, d.DueMs, d.Lost = deliveryrow.Phase_PHASE_PENDING, due, false
}

// retry schedules the next attempt after a failed one. The wait is at least retryAfter, the receiver's Retry-After. The
// delivery ends dead if it has no attempts left or the wait exceeds its budget or its TTL.
func (t *transition) retry(d *deliveryrow.Delivery, retryAfter time.Duration) {
	service := t.config.serviceOf(routeOf(d))
	wait := t.jitter(d, "retry", retry.Bound(service.Initial, service.Longest, uint32(len(d.Failures))))
	due := t.after(max(wait, retryAfter, minWait))
	switch {
	case t.attemptsSpent(d):
		t.markDead(d, reasonAttempts)
	case due >= d.ExpiresMs:
		t.markDead(d, reasonExpired)
	case due >= t.budgetEnd(d):
		t.markDead(d, reasonBudget)
	default:
		d.Phase, d.DueMs, d.Lost, d.Deferrals = deliveryrow.Phase_PHASE_PENDING, due, false, 0
	}
}

// budgetEnd returns when the budget of a delivery is spent, in milliseconds since the epoch.
func (t *transition) budgetEnd(d *deliveryrow.Delivery) int64 {
	return d.StartedMs + d.CreditMs + t.config.serviceOf(routeOf(d)).Budget.Milliseconds()
}

func budgetReason(d *deliveryrow.Delivery) string {
	if d.HeldBack {
		return reasonCircuit
	}
	return reasonBudget
}

// attemptsSpent reports whether a delivery has no attempts left.
func (t *transition) attemptsSpent(d *deliveryrow.Delivery) bool {
	return len(d.Failures) >= t.config.serviceOf(routeOf(d)).Attempts
}

func (t *transition) recordFailure(d *deliveryrow.Delivery, reason string, status int64) {
	d.Failures = append(d.Failures, &deliveryrow.Failure{
		Attempt: d.Attempt, Reason: clipped(reason), Status: int32(status), AtMs: t.nowMS(),
	})
}

// jitter returns a wait between zero and upper. It is derived from the delivery's ID, attempt and deferrals, so that a
// repeat of the event draws the same wait.
func (t *transition) jitter(d *deliveryrow.Delivery, what string, upper time.Duration) time.Duration {
	return retry.Jitter(upper, ofJitter, d.Id, what, strconv.Itoa(int(d.Attempt)), strconv.Itoa(int(d.Deferrals)))
}
