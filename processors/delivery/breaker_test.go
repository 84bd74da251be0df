package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

func routeReceipt(outcome topics.Outcome, change ...func(*topics.Receipt)) topics.Receipt {
	reason, sink := "timeout", "sink-1"
	r := topics.Receipt{
		DeliveryID: "d", Attempt: 1, Route: topics.Destination{Kind: "http", Service: "harbor"}, Outcome: outcome,
		Sink: &sink,
	}
	if outcome != topics.OutcomeDelivered {
		r.Reason = &reason
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func TestCircuitOpensAfterFailuresInARowAndClosesOnSuccess(t *testing.T) {
	b := Breaker{Failures: 3, Open: 5 * time.Second, Longest: 12 * time.Second}
	now := time.UnixMilli(1_000_000)
	var c *deliveryrow.Circuit
	apply := func(r topics.Receipt) {
		r.AtMS = now.UnixMilli()
		if next := applyReceipt(c, r, now, b); next != nil {
			c = next
		}
	}
	require.Equal(t, CircuitClosed, circuitPhase(c, now))
	for range 2 {
		apply(routeReceipt(topics.OutcomeFailed))
		require.Equal(t, CircuitClosed, circuitPhase(c, now))
	}
	for _, open := range []time.Duration{5 * time.Second, 10 * time.Second, 12 * time.Second, 12 * time.Second} {
		apply(routeReceipt(topics.OutcomeFailed))
		require.Equal(t, CircuitOpen, circuitPhase(c, now))
		require.Equal(t, now.Add(open).UnixMilli(), circuitGate(c, now).OpenUntilMS)
		apply(routeReceipt(topics.OutcomeFailed))
		require.Equal(t, now.Add(open).UnixMilli(), c.OpenUntilMs, "receipts of attempts in flight do not extend it")
		now = now.Add(open)
		require.Equal(t, CircuitHalfOpen, circuitPhase(c, now))
	}
	apply(routeReceipt(topics.OutcomeDelivered))
	require.Equal(t, CircuitClosed, circuitPhase(c, now))
	require.Zero(t, c.Failures)
}

func TestOnlyFailuresOfTheReceiverOpenTheCircuit(t *testing.T) {
	b := Breaker{Failures: 1, Open: time.Second, Longest: time.Second}
	now := time.UnixMilli(1_000_000)
	text := func(s string) func(*topics.Receipt) { return func(r *topics.Receipt) { r.Reason = &s } }
	for _, r := range []topics.Receipt{
		routeReceipt(topics.OutcomeFailed, func(r *topics.Receipt) { r.Status = 429 }),
		routeReceipt(topics.OutcomeFailed, text(ReasonInterrupted)),
		routeReceipt(topics.OutcomeFailed, text(topics.ReasonNotConnected)),
		routeReceipt(topics.OutcomeFailed, text(topics.ReasonConversationBusy)),
		routeReceipt(topics.OutcomeFailed, text(topics.ReasonContinues)),
		routeReceipt(topics.OutcomeDeferred), routeReceipt(topics.OutcomeRefused), routeReceipt(topics.OutcomeDelivered),
	} {
		require.Equal(t, CircuitClosed, circuitPhase(applyReceipt(nil, r, now, b), now))
	}
	require.Nil(t, applyReceipt(nil, routeReceipt(topics.OutcomeRefused, text(ReasonUnknownService)), now, b),
		"an unknown service gets no row")
	require.Nil(t, applyReceipt(nil, routeReceipt(topics.OutcomeDead, func(r *topics.Receipt) { r.Final = true }), now, b))
	never := applyReceipt(nil, routeReceipt(topics.OutcomeFailed), now, Breaker{})
	require.Equal(t, CircuitClosed, circuitPhase(never, now))
}

func TestGateSumsRecentReportsOfSinks(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	var c *deliveryrow.Circuit
	report := func(sink string, inFlight int64, at time.Time) {
		c = applyReceipt(c, routeReceipt(topics.OutcomeDelivered, func(r *topics.Receipt) {
			r.Sink, r.InFlight, r.AtMS = &sink, inFlight, at.UnixMilli()
		}), now, Breaker{})
	}
	report("a", 5, now)
	report("b", 7, now)
	require.EqualValues(t, 12, circuitGate(c, now).InFlight)
	report("a", 1, now.Add(-time.Second))
	require.EqualValues(t, 12, circuitGate(c, now).InFlight, "an older report that arrives later is ignored")
	report("a", 2, now.Add(time.Hour))
	require.EqualValues(t, 9, circuitGate(c, now).InFlight)
	require.Zero(t, circuitGate(c, now.Add(loadTTL)).InFlight, "old reports do not count")
	require.Zero(t, circuitGate((*deliveryrow.Circuit)(nil), now))
}

func TestCircuitRowIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(1_000_000)
		var c *deliveryrow.Circuit
		for _, sink := range rapid.SliceOfN(rapid.String(), 0, 200).Draw(t, "sinks") {
			c = applyReceipt(c, routeReceipt(topics.OutcomeFailed, func(r *topics.Receipt) {
				r.Sink, r.AtMS = &sink, now.UnixMilli()
			}), now, Breaker{Failures: 5, Open: 5 * time.Second, Longest: 15 * time.Second})
			require.LessOrEqual(t, len(c.Loads), maxSinks)
			raw, err := deliveryrow.CircuitTable.Marshal(c)
			require.NoError(t, err)
			require.Less(t, len(raw), 8<<10)
		}
	})
}
