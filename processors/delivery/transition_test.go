package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestOutputWithARouteIsAttemptedImmediately(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	require.Equal(t, "http/harbor", a.Route.Key())
	require.Equal(t, "t0ken", *a.Token)
	require.EqualValues(t, 1, a.Attempt)
	require.Equal(t, "t1", a.TurnID)
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), a.LeaseUntilMS)
	require.Contains(t, string(a.Body), "answer of t1")
	require.NotContains(t, string(a.Body), "reply_to")

	es := p.handle(p.receiptOf(a, topics.OutcomeDelivered))
	final := onlyValue[finalReceipt](t, es)
	require.True(t, final.Final)
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Len(t, valuesOf[routeRemoved](es), 1)
	require.Empty(t, p.state().Open)

	require.Empty(t, p.handle(p.receiptOf(a, topics.OutcomeDelivered)), "a repeat")
	require.Empty(t, p.handle(p.outputOf("t1", harbor)), "a repeated output")
	require.Empty(t, p.advance(48*time.Hour))
	require.Nil(t, p.row, "the row is deleted when its digests have expired")
}

func TestOutputWithoutARouteIsNotDelivered(t *testing.T) {
	p := newHarness(t)
	for _, descriptor := range []string{
		"", `{}`, `{"callbackService":" "}`, `{"callbackService":null,"bearerToken":"x"}`,
	} {
		require.Empty(t, p.handle(p.outputOf("t1", descriptor)))
	}
	require.Nil(t, p.row)

	p = newHarness(t, func(c *Config) { c.Unrouted = topics.Destination{Kind: topics.KindWebSocket} })
	a := attempt(t, p.handle(p.outputOf("t1", "")))
	require.Equal(t, "websocket/", a.Route.Key())
	require.Empty(t, valuesOf[routeRemoved](p.handle(p.receiptOf(a, topics.OutcomeDelivered))))
}

func TestRouteGivesTheTokenInEitherOrder(t *testing.T) {
	for _, first := range []string{"route", "output"} {
		t.Run(first, func(t *testing.T) {
			p := newHarness(t)
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
	p := newHarness(t)
	route, id := p.routeOf(harbor)
	require.Empty(t, p.handle(p.outputOf("t1", named(id))))
	es := p.advance(30 * time.Second)
	dead := onlyValue[deliveryDead](t, es)
	require.Equal(t, reasonNoRoute, dead.Reason)
	require.Equal(t, topics.OutcomeDead, onlyValue[finalReceipt](t, es).Outcome)

	require.Empty(t, p.handle(route), "late")
	a := attempt(t, p.handle(p.requeueOf(dead.Delivery.DeliveryID)))
	require.Equal(t, "t0ken", *a.Token, "a requeue delivers it once the route is there")
}

func TestTombstonesChangeNothing(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.handle(outputArrived{p.record("", nil), topics.Output{}}))
	require.Empty(t, p.handle(routeGiven{p.record("", nil), topics.Route{}}))
	require.Empty(t, p.handle(receiptArrived{p.record("", nil), topics.Receipt{}}))
	require.Equal(t, effects{deadLetter{Reason: reasonTombstone}}, p.handle(controlled{record: p.record("", nil)}))
	require.Nil(t, p.row)
}

func TestRefusedDeliveryEndsDead(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	es := p.handle(p.receiptOf(a, topics.OutcomeRefused, func(r *topics.Receipt) {
		reason := "status 404"
		r.Reason, r.Status = &reason, 404
	}))
	require.Equal(t, "refused: status 404", onlyValue[deliveryDead](t, es).Reason)
	require.Equal(t, topics.OutcomeDead, onlyValue[finalReceipt](t, es).Outcome)
}

func TestReceiptOfAnotherAttemptIsIgnored(t *testing.T) {
	p := newHarness(t)
	one := attempt(t, p.handle(p.outputOf("t1", harbor)))
	failed := p.receiptOf(one, topics.OutcomeFailed)
	p.handle(failed)
	before := p.row
	require.Empty(t, p.handle(failed))
	require.Empty(t, p.handle(p.receiptOf(one, topics.OutcomeDelivered)), "a failed attempt is not delivered later")
	require.Equal(t, before, p.row)
	es, _ := p.fireNext()
	two := attempt(t, es)
	require.Empty(t, p.handle(p.receiptOf(one, topics.OutcomeDelivered)))
	two.Attempt++
	require.Empty(t, p.handle(p.receiptOf(two, topics.OutcomeDelivered)))
	require.Empty(t, p.handle(p.receiptOf(two, topics.OutcomeDelivered, func(r *topics.Receipt) { r.Final = true })))
}

func TestOrderedRouteIsAttemptedInOrder(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Services = map[string]Service{"harbor": {Ordered: true}} })
	one := attempt(t, p.handle(p.outputOf("t1", harbor)))
	require.Empty(t, p.handle(p.outputOf("t2", harbor)))
	attempt(t, p.handle(p.outputOf("t3", `{"callbackService":"pier"}`)))
	p.handle(p.receiptOf(one, topics.OutcomeFailed))
	require.Empty(t, p.handle(p.outputOf("t4", harbor)), "it is blocked although nothing is in flight")
	es, _ := p.fireNext()
	es = p.handle(p.receiptOf(attempt(t, es), topics.OutcomeDelivered))
	two := attempt(t, es)
	require.Equal(t, "t2", two.TurnID)
	es = p.handle(p.receiptOf(two, topics.OutcomeRefused))
	require.Equal(t, "t4", attempt(t, es).TurnID, "a dead delivery blocks no other")
}

func TestDeadDeliveryIsRequeuedUnderItsID(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	p.handle(p.receiptOf(a, topics.OutcomeRefused))
	again := p.requeueOf(a.DeliveryID)
	b := attempt(t, p.handle(again))
	require.Equal(t, a.DeliveryID, b.DeliveryID)
	require.EqualValues(t, 2, b.Attempt)
	require.Equal(t, "t0ken", *b.Token)
	require.Empty(t, p.handle(again), "a repeat")
	es := p.handle(p.receiptOf(b, topics.OutcomeDelivered))
	require.Equal(t, b.DeliveryID+"/final/1", es[0].(emit).ID)
	require.Equal(t, effects{deadLetter{Reason: reasonNotDead}}, p.handle(p.requeueOf(a.DeliveryID)))
}

func TestDeadDeliveryExpires(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.KeepDead = time.Hour })
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	p.handle(p.receiptOf(a, topics.OutcomeRefused))
	require.Empty(t, p.advance(time.Hour))
	require.Empty(t, p.handle(p.outputOf("t1", harbor)), "the output is still deduplicated")
	require.Equal(t, effects{deadLetter{Reason: reasonNotDead}}, p.handle(p.requeueOf(a.DeliveryID)))
}

func TestRouteIsNotRemovedWhileTheSessionHasAnother(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.handle(p.outputOf("t1", harbor)))
	other, _ := p.routeOf(two)
	p.handle(other)
	require.Empty(t, valuesOf[routeRemoved](p.handle(p.receiptOf(a, topics.OutcomeDelivered))))
}

func TestDeliveryWithoutRoomEndsDeadImmediately(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.OpenLimit = 2 })
	p.handle(p.outputOf("t1", harbor))
	p.handle(p.outputOf("t2", harbor))
	require.Equal(t, reasonTooMany, onlyValue[deliveryDead](t, p.handle(p.outputOf("t3", harbor))).Reason)

	p = newHarness(t)
	large := strings.Repeat("x", p.config.RowLimit/3)
	descriptor := `{"callbackService":"harbor"}`
	for i, turn := range []string{"a", "b", "c"} {
		es := p.handle(p.outputOf(turn+large, descriptor))
		if i < 2 {
			attempt(t, es)
			continue
		}
		require.Len(t, valuesOf[finalReceipt](es), 1)
	}

	p = newHarness(t)
	es := p.handle(p.outputOf("a", `{"callbackService":"`+strings.Repeat("x", p.config.RecordLimit/4)+`"}`))
	dead := onlyValue[deliveryDead](t, es)
	require.Equal(t, reasonTooLarge, dead.Reason)
	require.Nil(t, dead.Delivery.Body)
	require.Empty(t, p.state().Dead)
}

func TestNewestDeliveriesEndDeadIfTheRowLimitIsLowered(t *testing.T) {
	p := newHarness(t)
	for _, turn := range []string{"a", "b", "c"} {
		attempt(t, p.handle(p.outputOf(turn+strings.Repeat("x", 60_000), harbor)))
	}
	p.config.RowLimit = minRecord - rowMargin
	es := p.advance(time.Minute)
	for _, dead := range valuesOf[deliveryDead](es) {
		require.Equal(t, reasonNoRoom, dead.Reason)
	}
	require.Len(t, valuesOf[finalReceipt](es), 2, "one fits")
}
