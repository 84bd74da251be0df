package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// FlightDeck waits 1, 2, 4, 8, then 15 s, for 120 s. Here these are the upper bounds of the waits.
func TestFailedAttemptsAreRetriedWithinTheBudget(t *testing.T) {
	p := newHarness(t)
	start := p.Now
	es := p.Handle(p.outputOf("t1", harbor))
	upper, tries := time.Second, 0
	for len(machinetest.Values[topics.Receipt](es)) == 0 {
		a := attempt(t, es)
		tries++
		require.EqualValues(t, tries, a.Attempt)
		require.Less(t, p.Now.Sub(start), 2*time.Minute)
		failed := p.Now
		es = p.Handle(p.receiptOf(a, topics.OutcomeFailed))
		if len(machinetest.Values[topics.Receipt](es)) == 0 {
			require.Empty(t, es, "it waits")
			es, _ = p.fireNext()
			require.LessOrEqual(t, p.Now.Sub(failed), upper)
			upper = min(2*upper, 15*time.Second)
		}
	}
	require.Greater(t, tries, 8)
	dead := machinetest.Only[topics.DeadDelivery](t, es)
	require.Equal(t, reasonBudget, dead.Reason)
	require.Len(t, dead.Failures, tries, "every attempt's reason")
	require.Equal(t, "status 503", dead.Failures[0].Reason)
	require.Nil(t, dead.Delivery.Token)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	asked := p.Now.Add(40 * time.Second)
	p.Handle(p.receiptOf(a, topics.OutcomeFailed, func(r *topics.Receipt) { r.Status, r.RetryAfterMS = 429, 40_000 }))
	a = attempt(t, func() effects { es, _ := p.fireNext(); return es }())
	require.Equal(t, asked, p.Now)
	es := p.Handle(p.receiptOf(a, topics.OutcomeFailed, func(r *topics.Receipt) { r.Status, r.RetryAfterMS = 429, 1<<60 }))
	require.Equal(t, reasonExpired, machinetest.Only[topics.DeadDelivery](t, es).Reason, "the wait exceeds the TTL")
}

func TestLostAttemptIsRetriedAfterItsLease(t *testing.T) {
	p := newHarness(t)
	one := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	require.Empty(t, p.advance(59*time.Second))
	two := attempt(t, p.advance(time.Second))
	require.EqualValues(t, 2, two.Attempt)
	require.Equal(t, one.DeliveryID, two.DeliveryID)
	require.Empty(t, p.Handle(p.receiptOf(one, topics.OutcomeFailed)))
	require.Len(t, machinetest.Values[topics.Receipt](p.Handle(p.receiptOf(two, topics.OutcomeDelivered))), 1)
}

func TestSinkOutageSpendsNoBudget(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.outputOf("t1", harbor))
	es := p.advance(23 * time.Hour)
	require.Empty(t, machinetest.Values[topics.Receipt](es))
	attempts := machinetest.Values[topics.Delivery](es)
	require.Less(t, len(attempts), p.config.DefaultService.Attempts)
	first, last := attempts[0], attempts[len(attempts)-1]
	require.Equal(t, p.config.Lease.Milliseconds()*2, first.LeaseUntilMS-first.NotBeforeMS, "the lease doubles with each lost attempt")
	require.Equal(t, p.config.Lease.Milliseconds()*15, last.LeaseUntilMS-last.NotBeforeMS)
	require.Len(t, machinetest.Values[topics.Receipt](p.Handle(p.receiptOf(last, topics.OutcomeDelivered))), 1)
}

// After a downtime, other records of the session are read before the receipt of the attempt, whose topic is another.
func TestReceiptThatIsReadLateEndsTheDelivery(t *testing.T) {
	for _, down := range []time.Duration{2 * time.Minute, 30 * time.Hour} {
		t.Run(down.String(), func(t *testing.T) {
			p := newHarness(t)
			a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
			read := p.Now
			p.Now = p.Now.Add(down)
			p.Handle(p.outputOf("t2", harbor))
			first := p.Read().Open[0]
			require.Equal(t, a.DeliveryID, first.Id)
			require.EqualValues(t, 1, first.Attempt, "a record ends no lease")
			for _, d := range machinetest.Values[topics.Delivery](p.Handle(deadlineCame{read})) {
				require.NotEqual(t, a.DeliveryID, d.DeliveryID, "what is due later waits")
			}
			r := machinetest.Only[topics.Receipt](t, p.Handle(p.receiptOf(a, topics.OutcomeDelivered)))
			require.Equal(t, topics.OutcomeDelivered, r.Outcome)
			require.Equal(t, a.DeliveryID, r.DeliveryID)
		})
	}
}

func TestLostAttemptsAreCounted(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.DefaultService.Attempts = 3 })
	p.Handle(p.outputOf("t1", harbor))
	es := p.advance(time.Hour)
	require.Len(t, machinetest.Values[topics.Delivery](es), 2)
	require.Equal(t, reasonAttempts, machinetest.Only[topics.DeadDelivery](t, es).Reason)
}

func TestTimeOfALostAttemptIsCreditedOnce(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	start := p.Now
	p.gates["http/harbor"] = gate{OpenUntilMS: p.Now.Add(100 * time.Second).UnixMilli()}
	require.Empty(t, p.advance(time.Minute), "the attempt is lost and the circuit is open")
	require.Empty(t, p.Handle(p.receiptOf(a, topics.OutcomeDeferred)))
	d := p.Read().Open[0]
	require.LessOrEqual(t, d.CreditMs, d.DueMs-start.UnixMilli())
}

func TestLateReceiptCountsUntilTheNextAttempt(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	p.gates["http/harbor"] = gate{OpenUntilMS: p.Now.Add(100 * time.Second).UnixMilli()}
	require.Empty(t, p.advance(time.Minute), "the attempt is lost and the circuit is open")
	require.Len(t, machinetest.Values[topics.Receipt](p.Handle(p.receiptOf(a, topics.OutcomeDelivered))), 1)
}

func TestDeferredAttemptSpendsNoBudget(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.outputOf("t1", harbor))
	start := p.Now
	for p.Now.Sub(start) < time.Hour {
		es = p.Handle(p.receiptOf(attempt(t, es), topics.OutcomeDeferred))
		require.Empty(t, es)
		es, _ = p.fireNext()
	}
	es = p.Handle(p.receiptOf(attempt(t, es), topics.OutcomeFailed))
	require.Empty(t, es, "the budget begins with the first attempt that was made")
	require.Len(t, p.Read().Open[0].Failures, 1)
}

func TestFullRouteIsNotAttempted(t *testing.T) {
	p := newHarness(t)
	p.gates["http/harbor"] = gate{InFlight: 32}
	require.Empty(t, p.Handle(p.outputOf("t1", harbor)))
	require.Empty(t, machinetest.Values[topics.Delivery](p.advance(time.Hour)))
	p.gates["http/harbor"] = gate{InFlight: 31}
	attempt(t, p.advance(time.Minute))
}

func TestOpenCircuitDelaysAttemptsUntilTheBudgetIsSpent(t *testing.T) {
	p := newHarness(t)
	p.gates["http/harbor"] = gate{OpenUntilMS: p.Now.Add(10 * time.Second).UnixMilli()}
	require.Empty(t, p.Handle(p.outputOf("t1", harbor)))
	opened := p.Now
	es, _ := p.fireNext()
	attempt(t, es)
	require.GreaterOrEqual(t, p.Now.Sub(opened), 10*time.Second)

	p = newHarness(t)
	p.gates["http/harbor"] = gate{OpenUntilMS: p.Now.Add(time.Hour).UnixMilli()}
	require.Empty(t, p.Handle(p.outputOf("t1", harbor)))
	require.Equal(t, reasonCircuit, machinetest.Only[topics.DeadDelivery](t, p.advance(2*time.Minute)).Reason)
}
