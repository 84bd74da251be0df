package delivery

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/topics"
)

// The states of a route's circuit breaker.
const (
	CircuitClosed   = "closed"
	CircuitOpen     = "open"
	CircuitHalfOpen = "half-open"
)

// statusTooManyRequests is the HTTP status of a receiver that works but is busy. It does not open the circuit.
const statusTooManyRequests = 429

// aboutOther are the reasons of failures that say nothing about the receiver, only about the sink, one recipient or one message.
var aboutOther = map[string]bool{
	ReasonInterrupted: true, topics.ReasonNotConnected: true, topics.ReasonConversationBusy: true, topics.ReasonContinues: true,
}

// applyReceipt is the state machine of a route: it applies the receipt of an attempt to the route's row. A nil circuit is
// a route without a row. applyReceipt modifies the circuit that it is given, so the caller must not use it afterwards. It
// returns the new row, or nil if the row stays as it is.
//
// A repeated receipt counts twice. It may open a circuit early, which delays attempts and loses no delivery.
func applyReceipt(c *deliveryrow.Circuit, r topics.Receipt, now time.Time, b Breaker) *deliveryrow.Circuit {
	if !reportsRoute(r) {
		return nil
	}
	if c == nil {
		c = &deliveryrow.Circuit{Version: rowVersion}
	}
	recordLoad(c, r, now)
	switch {
	case r.Outcome == topics.OutcomeDelivered, r.Outcome == topics.OutcomeRefused: // the receiver answers
		c.Failures, c.Opened, c.OpenUntilMs, c.Reason = 0, 0, 0, ""
	case r.Outcome != topics.OutcomeFailed, r.Status == statusTooManyRequests, aboutOther[reasonOf(r)]:
	default:
		c.Failures++
		c.Reason = clipped(reasonOf(r))
		if b.Failures > 0 && c.Failures >= uint32(b.Failures) && c.OpenUntilMs <= now.UnixMilli() {
			c.Opened++
			c.OpenUntilMs = now.Add(retry.Bound(b.Open, b.Longest, c.Opened)).UnixMilli()
		}
	}
	return c
}

// reportsRoute reports whether a receipt says something about a route: a sink wrote it, about a service in its registry.
func reportsRoute(r topics.Receipt) bool {
	unknown := r.Outcome == topics.OutcomeRefused && reasonOf(r) == ReasonUnknownService
	return !r.Final && !unknown && r.Outcome != topics.OutcomeDead && r.Outcome != topics.OutcomeSuppressed
}

// recordLoad stores how many attempts a sink has in flight. Reports may arrive out of order; an older one is ignored.
func recordLoad(c *deliveryrow.Circuit, r topics.Receipt, now time.Time) {
	if r.Sink == nil {
		return
	}
	sink := clipped(*r.Sink)
	old := now.Add(-loadTTL).UnixMilli()
	newer := slices.ContainsFunc(c.Loads, func(l *deliveryrow.Load) bool { return l.Sink == sink && l.AtMs > r.AtMS })
	c.Loads = slices.DeleteFunc(c.Loads, func(l *deliveryrow.Load) bool { return l.AtMs <= old || l.Sink == sink && !newer })
	if newer {
		return
	}
	// The time is at most now, so that a sink whose clock is ahead does not keep its report for longer.
	c.Loads = append(c.Loads, &deliveryrow.Load{Sink: sink, InFlight: max(r.InFlight, 0), AtMs: min(r.AtMS, now.UnixMilli())})
	if n := len(c.Loads) - maxSinks; n > 0 {
		c.Loads = c.Loads[n:]
	}
}

// circuitGate returns the snapshot of the route at a time. A nil circuit returns the zero Gate.
func circuitGate(c *deliveryrow.Circuit, now time.Time) gate {
	if c == nil {
		return gate{}
	}
	gate := gate{OpenUntilMS: c.OpenUntilMs}
	for _, l := range c.Loads {
		if l.AtMs > now.Add(-loadTTL).UnixMilli() {
			gate.InFlight += l.InFlight
		}
	}
	return gate
}

// circuitPhase returns the circuit's state at a time: CircuitClosed, CircuitOpen or CircuitHalfOpen. A nil circuit is closed.
func circuitPhase(c *deliveryrow.Circuit, now time.Time) string {
	switch {
	case c.GetOpenUntilMs() == 0:
		return CircuitClosed
	case c.OpenUntilMs > now.UnixMilli():
		return CircuitOpen
	default:
		return CircuitHalfOpen
	}
}
