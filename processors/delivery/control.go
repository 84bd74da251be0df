package delivery

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
)

// apply has a dead delivery tried again: with the same id, so that a receiver that took it before drops it, with
// attempts that count on, and with a new budget.
func (e Controlled) apply(s *session) {
	if e.tombstone() {
		s.refuse(reasonTombstone)
		return
	}
	cause := digests.Of(ofControl, e.Cause)
	if s.remembers(cause) {
		return
	}
	i := slices.IndexFunc(s.row.Dead, func(d *Delivery) bool { return d.Id == e.Control.DeliveryID })
	if i < 0 {
		s.refuse(reasonNotDead)
		return
	}
	d := s.row.Dead[i]
	s.row.Dead = slices.Delete(s.row.Dead, i, i+1)
	s.remember(cause)
	s.changed = true
	waited := d.RouteId != "" && d.Attempt == 0 && d.Token == nil && !s.remembers(digests.Of(ofRoute, d.RouteId))
	d.Phase, d.DueMs, d.ExpiresMs = Phase_PHASE_PENDING, s.nowMS(), s.after(s.rules.TTL)
	d.StartedMs, d.CreditMs, d.Deferrals, d.Failures = 0, 0, 0, nil
	d.Lost, d.HeldBack = false, false
	d.Round++
	if waited {
		s.awaitRoute(d)
	}
	s.row.Open = append(s.row.Open, d)
}
