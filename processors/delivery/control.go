package delivery

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
)

// apply requeues a dead delivery. The delivery keeps its ID, so that a receiver that has it drops the repeat; attempts
// continue to be numbered; the budget starts again.
func (e controlled) apply(t *transition) {
	if e.Tombstone() {
		t.DeadLetter(reasonTombstone)
		return
	}
	cause := digests.Of(ofControl, e.ID)
	if t.remembers(cause) {
		return
	}
	i := slices.IndexFunc(t.row.Dead, func(d *deliveryrow.Delivery) bool { return d.Id == e.Control.DeliveryID })
	if i < 0 {
		t.DeadLetter(reasonNotDead)
		return
	}
	d := t.row.Dead[i]
	t.row.Dead = slices.Delete(t.row.Dead, i, i+1)
	t.remember(cause)
	t.changed = true
	routeMissing := d.RouteId != "" && d.Attempt == 0 && d.Token == nil && !t.remembers(digests.Of(ofRoute, d.RouteId))
	d.Phase, d.DueMs, d.ExpiresMs = deliveryrow.Phase_PHASE_PENDING, t.nowMS(), t.after(t.config.TTL)
	d.StartedMs, d.CreditMs, d.Deferrals, d.Failures = 0, 0, 0, nil
	d.Lost, d.HeldBack = false, false
	d.Round++
	if routeMissing {
		t.awaitRoute(d)
	}
	t.row.Open = append(t.row.Open, d)
}
