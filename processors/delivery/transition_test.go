package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestOutputWithARouteIsAttemptedAtOnce(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	require.Equal(t, "http/harbor", a.Route.Key())
	require.Equal(t, "t0ken", *a.Token)
	require.EqualValues(t, 1, a.Attempt)
	require.Equal(t, "t1", a.TurnID)
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), a.LeaseUntilMS)
	require.Contains(t, string(a.Body), "answer of t1")
	require.NotContains(t, string(a.Body), "reply_to")

	es := p.handle(p.receiptOf(a, topics.OutcomeDelivered))
	final := the[Ended](t, es)
	require.True(t, final.Final)
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Len(t, of[RouteRemoved](es), 1)
	require.Empty(t, p.state().Open)

	require.Empty(t, p.handle(p.receiptOf(a, topics.OutcomeDelivered)), "a repeat")
	require.Empty(t, p.handle(p.outputOf("t1", harbor)), "the output once more")
	require.Empty(t, p.until(48*time.Hour))
	require.Nil(t, p.row, "the row goes with its memories")
}

func TestOutputWithoutARouteIsNotDelivered(t *testing.T) {
	p := newPlay(t)
	for _, descriptor := range []string{
		"", `{}`, `{"callbackService":" "}`, `{"callbackService":null,"bearerToken":"x"}`,
	} {
		require.Empty(t, p.handle(p.outputOf("t1", descriptor)))
	}
	require.Nil(t, p.row)

	p = newPlay(t, func(r *Rules) { r.Unrouted = topics.Destination{Kind: topics.KindWebSocket} })
	a := attempt(t, p.handle(p.outputOf("t1", "")))
	require.Equal(t, "websocket/", a.Route.Key())
	require.Empty(t, of[RouteRemoved](p.handle(p.receiptOf(a, topics.OutcomeDelivered))))
}

func TestRouteBringsTheTokenWhicheverComesFirst(t *testing.T) {
	for _, first := range []string{"route", "output"} {
		t.Run(first, func(t *testing.T) {
			p := newPlay(t)
			route, id := p.routeOf(harbor)
			output := p.outputOf("t1", named(id))
			one, two := route, output
			if first == "output" {
				one, two = output, route
			}
			require.Empty(t, p.handle(one))
			a := attempt(t, p.handle(two))
			require.Equal(t, "t0ken", *a.Token)
			require.Empty(t, p.handle(route), "used")
			require.Empty(t, p.state().Routes)
		})
	}
}

func TestOutputWaitsForItsRouteForALimitedTime(t *testing.T) {
	p := newPlay(t)
	route, id := p.routeOf(harbor)
	require.Empty(t, p.handle(p.outputOf("t1", named(id))))
	es := p.until(30 * time.Second)
	dead := the[Buried](t, es)
	require.Equal(t, reasonNoRoute, dead.Reason)
	require.Equal(t, topics.OutcomeDead, the[Ended](t, es).Outcome)

	require.Empty(t, p.handle(route), "late")
	a := attempt(t, p.handle(p.requeueOf(dead.Delivery.DeliveryID)))
	require.Equal(t, "t0ken", *a.Token, "an operator can have it delivered then")
}

func TestTombstonesChangeNothing(t *testing.T) {
	p := newPlay(t)
	require.Empty(t, p.handle(OutputArrived{p.record("", nil), topics.Output{}}))
	require.Empty(t, p.handle(RouteGiven{p.record("", nil), topics.Route{}}))
	require.Empty(t, p.handle(Reported{p.record("", nil), topics.Receipt{}}))
	require.Equal(t, effects{DeadLetter{Reason: reasonTombstone}}, p.handle(Controlled{Record: p.record("", nil)}))
	require.Nil(t, p.row)
}

// The waits of FlightDeck are 1, 2, 4, 8, then 15 s, for 120 s: here each is drawn from zero up to that.
func TestRetriesAreTimersWithinTheirBudget(t *testing.T) {
	p := newPlay(t)
	start := p.now
	es := p.handle(p.outputOf("t1", harbor))
	upper, tries := time.Second, 0
	for len(of[Ended](es)) == 0 {
		a := attempt(t, es)
		tries++
		require.EqualValues(t, tries, a.Attempt)
		require.Less(t, p.now.Sub(start), 2*time.Minute)
		failed := p.now
		es = p.handle(p.receiptOf(a, topics.OutcomeFailed))
		if len(of[Ended](es)) == 0 {
			require.Empty(t, es, "it waits")
			es, _ = p.next()
			require.LessOrEqual(t, p.now.Sub(failed), upper)
			upper = min(2*upper, 15*time.Second)
		}
	}
	require.Greater(t, tries, 8)
	dead := the[Buried](t, es)
	require.Equal(t, reasonBudget, dead.Reason)
	require.Len(t, dead.Failures, tries, "every attempt's reason")
	require.Equal(t, "status 503", dead.Failures[0].Reason)
	require.Nil(t, dead.Delivery.Token)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	asked := p.now.Add(40 * time.Second)
	p.handle(p.receiptOf(a, topics.OutcomeFailed, func(r *topics.Receipt) { r.Status, r.RetryAfterMS = 429, 40_000 }))
	a = attempt(t, func() effects { es, _ := p.next(); return es }())
	require.Equal(t, asked, p.now)
	es := p.handle(p.receiptOf(a, topics.OutcomeFailed, func(r *topics.Receipt) { r.Status, r.RetryAfterMS = 429, 1<<60 }))
	require.Equal(t, reasonExpired, the[Buried](t, es).Reason, "it would wait for longer than it may")
}

func TestRefusalEndsIt(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	es := p.handle(p.receiptOf(a, topics.OutcomeRefused, func(r *topics.Receipt) {
		reason := "status 404"
		r.Reason, r.Status = &reason, 404
	}))
	require.Equal(t, "refused: status 404", the[Buried](t, es).Reason)
	require.Equal(t, topics.OutcomeDead, the[Ended](t, es).Outcome)
}

func TestReceiptOfAnotherAttemptIsIgnored(t *testing.T) {
	p := newPlay(t)
	one := attempt(t, p.handle(p.outputOf("t1", harbor)))
	failed := p.receiptOf(one, topics.OutcomeFailed)
	p.handle(failed)
	before := p.row
	require.Empty(t, p.handle(failed))
	require.Empty(t, p.handle(p.receiptOf(one, topics.OutcomeDelivered)), "the one that failed cannot be delivered later")
	require.Equal(t, before, p.row)
	es, _ := p.next()
	two := attempt(t, es)
	require.Empty(t, p.handle(p.receiptOf(one, topics.OutcomeDelivered)))
	two.Attempt++
	require.Empty(t, p.handle(p.receiptOf(two, topics.OutcomeDelivered)))
	require.Empty(t, p.handle(p.receiptOf(two, topics.OutcomeDelivered, func(r *topics.Receipt) { r.Final = true })))
}

func TestAttemptWhoseSinkDiedIsTakenUpAfterItsLease(t *testing.T) {
	p := newPlay(t)
	one := attempt(t, p.handle(p.outputOf("t1", harbor)))
	require.Empty(t, p.until(59*time.Second))
	two := attempt(t, p.until(time.Second))
	require.EqualValues(t, 2, two.Attempt)
	require.Equal(t, one.DeliveryID, two.DeliveryID)
	require.Empty(t, p.handle(p.receiptOf(one, topics.OutcomeFailed)))
	require.Len(t, of[Ended](p.handle(p.receiptOf(two, topics.OutcomeDelivered))), 1)
}

func TestSinkThatIsGoneForLongCostsNoBudget(t *testing.T) {
	p := newPlay(t)
	p.handle(p.outputOf("t1", harbor))
	es := p.until(23 * time.Hour)
	require.Empty(t, of[Ended](es))
	attempts := of[Attempted](es)
	require.Less(t, len(attempts), p.rules.Default.Attempts)
	first, last := attempts[0], attempts[len(attempts)-1]
	require.Equal(t, p.rules.Lease.Milliseconds()*2, first.LeaseUntilMS-first.NotBeforeMS, "longer after each loss")
	require.Equal(t, p.rules.Lease.Milliseconds()*15, last.LeaseUntilMS-last.NotBeforeMS)
	require.Len(t, of[Ended](p.handle(p.receiptOf(topics.Delivery(last), topics.OutcomeDelivered))), 1)
}

func TestAttemptsThatAreLostAreCounted(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.Default.Attempts = 3 })
	p.handle(p.outputOf("t1", harbor))
	es := p.until(time.Hour)
	require.Len(t, of[Attempted](es), 2)
	require.Equal(t, reasonAttempts, the[Buried](t, es).Reason)
}

func TestTimeThatAnAttemptWasLostForIsCountedOnce(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	start := p.now
	p.gates["http/harbor"] = Gate{OpenUntilMS: p.now.Add(100 * time.Second).UnixMilli()}
	require.Empty(t, p.until(time.Minute), "lost, and held back")
	require.Empty(t, p.handle(p.receiptOf(a, topics.OutcomeDeferred)))
	d := p.state().Open[0]
	require.LessOrEqual(t, d.CreditMs, d.DueMs-start.UnixMilli())
}

func TestReceiptAfterTheLeaseCountsWhileNothingElseWasTried(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	p.gates["http/harbor"] = Gate{OpenUntilMS: p.now.Add(100 * time.Second).UnixMilli()}
	require.Empty(t, p.until(time.Minute), "lost, and held back")
	require.Len(t, of[Ended](p.handle(p.receiptOf(a, topics.OutcomeDelivered))), 1)
}

func TestDeferredCostsNoBudgetAndNoAttempt(t *testing.T) {
	p := newPlay(t)
	es := p.handle(p.outputOf("t1", harbor))
	start := p.now
	for p.now.Sub(start) < time.Hour {
		es = p.handle(p.receiptOf(attempt(t, es), topics.OutcomeDeferred))
		require.Empty(t, es)
		es, _ = p.next()
	}
	es = p.handle(p.receiptOf(attempt(t, es), topics.OutcomeFailed))
	require.Empty(t, es, "its budget begins with its first attempt that was made")
	require.Len(t, p.state().Open[0].Failures, 1)
}

func TestFullRouteIsNotTried(t *testing.T) {
	p := newPlay(t)
	p.gates["http/harbor"] = Gate{InFlight: 32}
	require.Empty(t, p.handle(p.outputOf("t1", harbor)))
	require.Empty(t, of[Attempted](p.until(time.Hour)))
	p.gates["http/harbor"] = Gate{InFlight: 31}
	attempt(t, p.until(time.Minute))
}

func TestOpenCircuitHoldsBackUntilTheBudgetIsSpent(t *testing.T) {
	p := newPlay(t)
	p.gates["http/harbor"] = Gate{OpenUntilMS: p.now.Add(10 * time.Second).UnixMilli()}
	require.Empty(t, p.handle(p.outputOf("t1", harbor)))
	opened := p.now
	es, _ := p.next()
	attempt(t, es)
	require.GreaterOrEqual(t, p.now.Sub(opened), 10*time.Second)

	p = newPlay(t)
	p.gates["http/harbor"] = Gate{OpenUntilMS: p.now.Add(time.Hour).UnixMilli()}
	require.Empty(t, p.handle(p.outputOf("t1", harbor)))
	require.Equal(t, reasonCircuit, the[Buried](t, p.until(2*time.Minute)).Reason)
}

func TestOrderedRouteKeepsOrder(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.Services = map[string]Service{"harbor": {Ordered: true}} })
	one := attempt(t, p.handle(p.outputOf("t1", harbor)))
	require.Empty(t, p.handle(p.outputOf("t2", harbor)))
	attempt(t, p.handle(p.outputOf("t3", `{"callbackService":"pier"}`)))
	p.handle(p.receiptOf(one, topics.OutcomeFailed))
	require.Empty(t, p.handle(p.outputOf("t4", harbor)), "it waits even while nothing is on its way")
	es, _ := p.next()
	es = p.handle(p.receiptOf(attempt(t, es), topics.OutcomeDelivered))
	two := attempt(t, es)
	require.Equal(t, "t2", two.TurnID)
	es = p.handle(p.receiptOf(two, topics.OutcomeRefused))
	require.Equal(t, "t4", attempt(t, es).TurnID, "one that is dead holds up nobody")
}

func TestDeadDeliveryIsRequeuedUnderItsID(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	p.handle(p.receiptOf(a, topics.OutcomeRefused))
	again := p.requeueOf(a.DeliveryID)
	b := attempt(t, p.handle(again))
	require.Equal(t, a.DeliveryID, b.DeliveryID)
	require.EqualValues(t, 2, b.Attempt)
	require.Equal(t, "t0ken", *b.Token)
	require.Empty(t, p.handle(again), "a repeat")
	es := p.handle(p.receiptOf(b, topics.OutcomeDelivered))
	require.Equal(t, b.DeliveryID+"/final/1", es[0].(Emit).ID)
	require.Equal(t, effects{DeadLetter{Reason: reasonNotDead}}, p.handle(p.requeueOf(a.DeliveryID)))
}

func TestDeadAreKeptForAWhile(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.KeepDead = time.Hour })
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	p.handle(p.receiptOf(a, topics.OutcomeRefused))
	require.Empty(t, p.until(time.Hour))
	require.Empty(t, p.handle(p.outputOf("t1", harbor)), "its output is remembered still")
	require.Equal(t, effects{DeadLetter{Reason: reasonNotDead}}, p.handle(p.requeueOf(a.DeliveryID)))
}

func TestRouteRemovalSparesOtherRoutesOfTheSession(t *testing.T) {
	p := newPlay(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	other, _ := p.routeOf(harbor)
	p.handle(other)
	require.Empty(t, of[RouteRemoved](p.handle(p.receiptOf(a, topics.OutcomeDelivered))))
}

func TestWhatHasNoRoomIsDeadAtOnce(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.OpenLimit = 2 })
	p.handle(p.outputOf("t1", harbor))
	p.handle(p.outputOf("t2", harbor))
	require.Equal(t, reasonTooMany, the[Buried](t, p.handle(p.outputOf("t3", harbor))).Reason)

	p = newPlay(t)
	large := strings.Repeat("x", p.rules.RowLimit/3)
	descriptor := `{"callbackService":"harbor"}`
	for i, turn := range []string{"a", "b", "c"} {
		es := p.handle(p.outputOf(turn+large, descriptor))
		if i < 2 {
			attempt(t, es)
			continue
		}
		require.Len(t, of[Ended](es), 1)
	}

	p = newPlay(t)
	es := p.handle(p.outputOf("a", `{"callbackService":"`+strings.Repeat("x", p.rules.RecordLimit/4)+`"}`))
	dead := the[Buried](t, es)
	require.Equal(t, reasonTooLarge, dead.Reason)
	require.Nil(t, dead.Delivery.Body)
	require.Empty(t, p.state().Dead)
}

func TestNewestDeliveriesGiveWayWhereTheLimitWasLowered(t *testing.T) {
	p := newPlay(t)
	for _, turn := range []string{"a", "b", "c"} {
		attempt(t, p.handle(p.outputOf(turn+strings.Repeat("x", 60_000), harbor)))
	}
	p.rules.RowLimit = minRecord - rowMargin
	es := p.until(time.Minute)
	for _, dead := range of[Buried](es) {
		require.Equal(t, reasonNoRoom, dead.Reason)
	}
	require.Len(t, of[Ended](es), 2, "one fits")
}
