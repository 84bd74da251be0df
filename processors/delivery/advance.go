package delivery

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// advance does what is due. It looks at the deliveries in the order in which they came: of an ordered route only the
// first moves.
func (s *session) advance() {
	for _, d := range slices.Clone(s.row.Open) {
		switch {
		case d.Phase == Phase_PHASE_IN_FLIGHT:
			if d.DueMs <= s.nowMS() {
				s.lose(d)
			}
		case s.blocked(d):
			if d.ExpiresMs <= s.nowMS() {
				s.bury(d, reasonExpired)
			}
		case d.Phase == Phase_PHASE_ROUTE:
			s.waitForRoute(d)
		default:
			s.attempt(d)
		}
	}
}

// blocked reports whether an earlier delivery to the same service must end first.
func (s *session) blocked(d *Delivery) bool {
	if !s.rules.service(d.Service).Ordered {
		return false
	}
	for _, earlier := range s.row.Open {
		if earlier == d {
			return false
		}
		if earlier.route() == d.route() {
			return true
		}
	}
	return false
}

func (s *session) waitForRoute(d *Delivery) {
	if min(d.DueMs, d.ExpiresMs) <= s.nowMS() {
		s.bury(d, reasonNoRoute)
	}
}

// attempt emits the next attempt of a pending delivery, where it is due and the route is open.
func (s *session) attempt(d *Delivery) {
	if d.ExpiresMs <= s.nowMS() {
		s.bury(d, reasonExpired)
		return
	}
	if d.DueMs > s.nowMS() {
		return
	}
	s.changed = true
	service := s.rules.service(d.Service)
	if d.StartedMs == 0 {
		d.StartedMs = s.nowMS()
	}
	if s.nowMS() >= s.end(d) {
		s.bury(d, budgetReason(d))
		return
	}
	switch gate := s.routes(d.route().Key()); {
	case gate.OpenUntilMS > s.nowMS():
		// Spread over as long again: the first to come through shows how the receiver is.
		rest := time.Duration(gate.OpenUntilMS-s.nowMS()) * time.Millisecond
		d.DueMs = min(s.after(rest+s.jitter(d, "circuit", rest)), s.end(d), d.ExpiresMs)
		d.HeldBack = true
		return
	case gate.InFlight >= int64(service.InFlight):
		s.deferFor(d, s.nowMS())
		return
	}
	s.send(d)
}

// send emits the record of the next attempt.
func (s *session) send(d *Delivery) {
	notBefore := d.DueMs
	d.Attempt++
	d.Phase, d.DueMs, d.EmittedMs = Phase_PHASE_IN_FLIGHT, s.after(s.lease(d)), s.nowMS()
	d.Lost, d.HeldBack = false, false
	s.emit(d, "attempt", d.Attempt, Attempted(topics.Delivery{
		DeliveryID: d.Id, SessionID: s.key, TurnID: d.TurnId, RequestID: d.RequestId, Route: d.route(), Token: d.Token,
		Body: d.Body, CreatedMS: d.CreatedMs, ExpiresMS: d.ExpiresMs, Attempt: int64(d.Attempt),
		NotBeforeMS: notBefore, LeaseUntilMS: d.DueMs,
	}))
}

// longestLease is how many times the lease of an attempt may grow.
const longestLease = 15

// lease is how long the receipt of the next attempt is waited for: the longer, the more attempts before it were lost in
// a row. So a sink that is away for a day costs a delivery no more attempts than it has.
func (s *session) lease(d *Delivery) time.Duration {
	lost := uint32(0)
	for i := len(d.Failures); i > 0 && d.Failures[i-1].Reason == reasonLost; i-- {
		lost++
	}
	return backoff(s.rules.Lease, longestLease*s.rules.Lease, lost+1)
}

// lose takes up a delivery whose attempt had no receipt in time: its sink is gone. That it was lost costs an attempt,
// but no time: a sink that is down for long would kill what it never tried.
func (s *session) lose(d *Delivery) {
	s.changed = true
	s.fail(d, reasonLost, 0)
	d.CreditMs += s.nowMS() - d.EmittedMs
	d.Phase, d.DueMs, d.Lost = Phase_PHASE_PENDING, s.nowMS(), true
	if s.spent(d) {
		s.bury(d, reasonAttempts)
		return
	}
	s.attempt(d)
}

// deferFor lets a delivery wait whose route had no room since a time. The wait grows; neither it nor the time since
// counts.
func (s *session) deferFor(d *Delivery, sinceMS int64) {
	s.changed = true
	d.Deferrals++
	service := s.rules.service(d.Service)
	upper := backoff(min(service.Initial, firstDeferral), service.Longest, d.Deferrals)
	// At least half of it, for what is on its way to end.
	due := s.after(max(upper/2+s.jitter(d, "deferral", upper/2), minWait))
	d.CreditMs += due - sinceMS
	d.Phase, d.DueMs, d.Lost = Phase_PHASE_PENDING, due, false
}

// retry lets a delivery wait after a failed attempt, or buries it where it would wait too long. The receiver may ask
// for a longer wait.
func (s *session) retry(d *Delivery, asked time.Duration) {
	service := s.rules.service(d.Service)
	wait := s.jitter(d, "retry", backoff(service.Initial, service.Longest, uint32(len(d.Failures))))
	due := s.after(max(wait, asked, minWait))
	switch {
	case s.spent(d):
		s.bury(d, reasonAttempts)
	case due >= d.ExpiresMs:
		s.bury(d, reasonExpired)
	case due >= s.end(d):
		s.bury(d, reasonBudget)
	default:
		d.Phase, d.DueMs, d.Lost, d.Deferrals = Phase_PHASE_PENDING, due, false, 0
	}
}

// end is when the retry time of a delivery is spent.
func (s *session) end(d *Delivery) int64 {
	return d.StartedMs + d.CreditMs + s.rules.service(d.Service).Budget.Milliseconds()
}

// spent reports whether a delivery has no attempts left.
func (s *session) spent(d *Delivery) bool {
	return len(d.Failures) >= s.rules.service(d.Service).Attempts
}

func (s *session) fail(d *Delivery, reason string, status int64) {
	d.Failures = append(d.Failures, &Failure{
		Attempt: d.Attempt, Reason: clipped(reason), Status: int32(status), AtMs: s.nowMS(),
	})
}

func budgetReason(d *Delivery) string {
	if d.HeldBack {
		return reasonCircuit
	}
	return reasonBudget
}

// backoff is the upper end of the n-th wait.
func backoff(initial, longest time.Duration, n uint32) time.Duration {
	for ; n > 1 && initial < longest; n-- {
		initial *= 2
	}
	return min(initial, longest)
}

// jitter is a part of a wait, drawn from what the delivery is: the same at every repeat.
func (s *session) jitter(d *Delivery, what string, upper time.Duration) time.Duration {
	drawn := digests.Of(ofJitter, d.Id, what, strconv.Itoa(int(d.Attempt)), strconv.Itoa(int(d.Deferrals)))
	fraction := float64(binary.BigEndian.Uint64(drawn[:])>>11) / float64(1<<53)
	return time.Duration(math.Round(fraction * float64(upper)))
}
