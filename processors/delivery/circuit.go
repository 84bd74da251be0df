package delivery

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// The states of a route's circuit.
const (
	CircuitClosed   = "closed"
	CircuitOpen     = "open"
	CircuitHalfOpen = "half-open"
)

// statusTooMany is the HTTP status of a receiver that is well and busy.
const statusTooMany = 429

// ApplyReceipt is the state machine of a route: what the receipt of an attempt does to its row. A nil circuit is a
// route without a row. It owns the circuit it is given, and returns the row from now on, or nil where it stays as it
// was found.
//
// A repeat counts once more. That may open a circuit early, which costs an attempt, no delivery.
func ApplyReceipt(c *Circuit, r topics.Receipt, now time.Time, b Breaker) *Circuit {
	if !reportsRoute(r) {
		return nil
	}
	if c == nil {
		c = &Circuit{Version: rowVersion}
	}
	c.load(r, now)
	switch {
	case r.Outcome == topics.OutcomeDelivered, r.Outcome == topics.OutcomeRefused: // it answers
		c.Failures, c.Opened, c.OpenUntilMs, c.Reason = 0, 0, 0, ""
	case r.Outcome != topics.OutcomeFailed, r.Status == statusTooMany, reasonOf(r) == ReasonInterrupted:
	default:
		c.Failures++
		c.Reason = clipped(reasonOf(r))
		if b.Failures > 0 && c.Failures >= uint32(b.Failures) && c.OpenUntilMs <= now.UnixMilli() {
			c.Opened++
			c.OpenUntilMs = now.Add(backoff(b.Open, b.Longest, c.Opened)).UnixMilli()
		}
	}
	return c
}

// reportsRoute reports whether a receipt says something about a route: it is a sink's, about a service that it knows.
func reportsRoute(r topics.Receipt) bool {
	unknown := r.Outcome == topics.OutcomeRefused && reasonOf(r) == ReasonUnknownService
	return !r.Final && !unknown && r.Outcome != topics.OutcomeDead
}

// load keeps what a sink has on its way. Its reports may overtake one another.
func (c *Circuit) load(r topics.Receipt, now time.Time) {
	if r.Sink == nil {
		return
	}
	sink := clipped(*r.Sink)
	old := now.Add(-loadFor).UnixMilli()
	newer := slices.ContainsFunc(c.Loads, func(l *Load) bool { return l.Sink == sink && l.AtMs > r.AtMS })
	c.Loads = slices.DeleteFunc(c.Loads, func(l *Load) bool { return l.AtMs <= old || l.Sink == sink && !newer })
	if newer {
		return
	}
	// A clock that is ahead must not keep a report for longer.
	c.Loads = append(c.Loads, &Load{Sink: sink, InFlight: max(r.InFlight, 0), AtMs: min(r.AtMS, now.UnixMilli())})
	if n := len(c.Loads) - maxSinks; n > 0 {
		c.Loads = c.Loads[n:]
	}
}

// Gate is what a delivery needs to know of the route.
func (c *Circuit) Gate(now time.Time) Gate {
	if c == nil {
		return Gate{}
	}
	gate := Gate{OpenUntilMS: c.OpenUntilMs}
	for _, l := range c.Loads {
		if l.AtMs > now.Add(-loadFor).UnixMilli() {
			gate.InFlight += l.InFlight
		}
	}
	return gate
}

// Phase names the state that the circuit is in.
func (c *Circuit) Phase(now time.Time) string {
	switch {
	case c.GetOpenUntilMs() == 0:
		return CircuitClosed
	case c.OpenUntilMs > now.UnixMilli():
		return CircuitOpen
	default:
		return CircuitHalfOpen
	}
}
