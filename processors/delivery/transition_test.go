package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestOutputWithARouteIsAttemptedImmediately(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	require.Equal(t, "http/harbor", a.Route.Key())
	require.Equal(t, "t0ken", *a.Token)
	require.EqualValues(t, 1, a.Attempt)
	require.Equal(t, "t1", a.TurnID)
	require.Equal(t, p.Now.Add(time.Minute).UnixMilli(), a.LeaseUntilMS)
	require.Contains(t, string(a.Body), "answer of t1")
	require.NotContains(t, string(a.Body), "reply_to")

	es := p.Handle(p.receiptOf(a, topics.OutcomeDelivered))
	final := machinetest.Only[topics.Receipt](t, es)
	require.True(t, final.Final)
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Len(t, removals(es), 1)
	require.Empty(t, p.Read().Open)

	require.Empty(t, p.Handle(p.receiptOf(a, topics.OutcomeDelivered)), "a repeat")
	require.Empty(t, p.Handle(p.outputOf("t1", harbor)), "a repeated output")
	require.Empty(t, p.advance(48*time.Hour))
	require.Nil(t, p.Row, "the row is deleted when its digests have expired")
}

func TestOutputWithoutARouteIsNotDelivered(t *testing.T) {
	p := newHarness(t)
	for _, descriptor := range []string{
		"", `{}`, `{"callbackService":" "}`, `{"callbackService":null,"bearerToken":"x"}`,
	} {
		require.Empty(t, p.Handle(p.outputOf("t1", descriptor)))
	}
	require.Nil(t, p.Row)

	p = newHarness(t, func(c *Config) { c.Unrouted = topics.Destination{Kind: topics.KindWebSocket} })
	a := attempt(t, p.Handle(p.outputOf("t1", "")))
	require.Equal(t, "websocket/", a.Route.Key())
	require.Empty(t, removals(p.Handle(p.receiptOf(a, topics.OutcomeDelivered))))
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
			require.Empty(t, p.Handle(one))
			a := attempt(t, p.Handle(two))
			require.Equal(t, "t0ken", *a.Token)
			require.Empty(t, p.Handle(route), "used")
			require.Empty(t, p.Read().Routes)
		})
	}
}

func TestOutputWaitsForItsRouteForALimitedTime(t *testing.T) {
	p := newHarness(t)
	route, id := p.routeOf(harbor)
	require.Empty(t, p.Handle(p.outputOf("t1", named(id))))
	es := p.advance(30 * time.Second)
	dead := machinetest.Only[topics.DeadDelivery](t, es)
	require.Equal(t, reasonNoRoute, dead.Reason)
	require.Equal(t, topics.OutcomeDead, machinetest.Only[topics.Receipt](t, es).Outcome)

	require.Empty(t, p.Handle(route), "late")
	a := attempt(t, p.Handle(p.requeueOf(dead.Delivery.DeliveryID)))
	require.Equal(t, "t0ken", *a.Token, "a requeue delivers it once the route is there")
}

func TestTombstonesChangeNothing(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.Handle(outputArrived{p.tombstone(), topics.Output{}}))
	require.Empty(t, p.Handle(routeGiven{p.tombstone(), topics.Route{}}))
	require.Empty(t, p.Handle(receiptArrived{p.tombstone(), topics.Receipt{}}))
	require.Equal(t, reasonTombstone, machinetest.Reason(t, p.Handle(controlled{Record: p.tombstone()})))
	require.Nil(t, p.Row)
}

func TestRefusedDeliveryEndsDead(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	es := p.Handle(p.receiptOf(a, topics.OutcomeRefused, func(r *topics.Receipt) {
		reason := "status 404"
		r.Reason, r.Status = &reason, 404
	}))
	require.Equal(t, "refused: status 404", machinetest.Only[topics.DeadDelivery](t, es).Reason)
	require.Equal(t, topics.OutcomeDead, machinetest.Only[topics.Receipt](t, es).Outcome)
}

func TestReceiptOfAnotherAttemptIsIgnored(t *testing.T) {
	p := newHarness(t)
	one := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	failed := p.receiptOf(one, topics.OutcomeFailed)
	p.Handle(failed)
	before := p.Row
	require.Empty(t, p.Handle(failed))
	require.Empty(t, p.Handle(p.receiptOf(one, topics.OutcomeDelivered)), "a failed attempt is not delivered later")
	require.Equal(t, before, p.Row)
	es, _ := p.fireNext()
	two := attempt(t, es)
	require.Empty(t, p.Handle(p.receiptOf(one, topics.OutcomeDelivered)))
	two.Attempt++
	require.Empty(t, p.Handle(p.receiptOf(two, topics.OutcomeDelivered)))
	require.Empty(t, p.Handle(p.receiptOf(two, topics.OutcomeDelivered, func(r *topics.Receipt) { r.Final = true })))
}

func TestOrderedRouteIsAttemptedInOrder(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Services = map[string]Service{"harbor": {Ordered: true}} })
	one := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	require.Empty(t, p.Handle(p.outputOf("t2", harbor)))
	attempt(t, p.Handle(p.outputOf("t3", `{"callbackService":"pier"}`)))
	p.Handle(p.receiptOf(one, topics.OutcomeFailed))
	require.Empty(t, p.Handle(p.outputOf("t4", harbor)), "it is blocked although nothing is in flight")
	es, _ := p.fireNext()
	es = p.Handle(p.receiptOf(attempt(t, es), topics.OutcomeDelivered))
	two := attempt(t, es)
	require.Equal(t, "t2", two.TurnID)
	es = p.Handle(p.receiptOf(two, topics.OutcomeRefused))
	require.Equal(t, "t4", attempt(t, es).TurnID, "a dead delivery blocks no other")
}

func TestDeadDeliveryIsRequeuedUnderItsID(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	p.Handle(p.receiptOf(a, topics.OutcomeRefused))
	again := p.requeueOf(a.DeliveryID)
	b := attempt(t, p.Handle(again))
	require.Equal(t, a.DeliveryID, b.DeliveryID)
	require.EqualValues(t, 2, b.Attempt)
	require.Equal(t, "t0ken", *b.Token)
	require.Empty(t, p.Handle(again), "a repeat")
	es := p.Handle(p.receiptOf(b, topics.OutcomeDelivered))
	require.Equal(t, b.DeliveryID+"/final/1", es[0].ID)
	require.Equal(t, reasonNotDead, machinetest.Reason(t, p.Handle(p.requeueOf(a.DeliveryID))))
}

func TestDeadDeliveryExpires(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.KeepDead = time.Hour })
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	p.Handle(p.receiptOf(a, topics.OutcomeRefused))
	require.Empty(t, p.advance(time.Hour))
	require.Empty(t, p.Handle(p.outputOf("t1", harbor)), "the output is still deduplicated")
	require.Equal(t, reasonNotDead, machinetest.Reason(t, p.Handle(p.requeueOf(a.DeliveryID))))
}

func TestRouteIsNotRemovedWhileTheSessionHasAnother(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	other, _ := p.routeOf(two)
	p.Handle(other)
	require.Empty(t, removals(p.Handle(p.receiptOf(a, topics.OutcomeDelivered))))
}

func TestDeliveryWithoutRoomEndsDeadImmediately(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.OpenLimit = 2 })
	p.Handle(p.outputOf("t1", harbor))
	p.Handle(p.outputOf("t2", harbor))
	require.Equal(t, reasonTooMany, machinetest.Only[topics.DeadDelivery](t, p.Handle(p.outputOf("t3", harbor))).Reason)

	p = newHarness(t)
	large := strings.Repeat("x", p.config.RowLimit/3)
	descriptor := `{"callbackService":"harbor"}`
	for i, turn := range []string{"a", "b", "c"} {
		es := p.Handle(p.outputOf(turn+large, descriptor))
		if i < 2 {
			attempt(t, es)
			continue
		}
		require.Len(t, machinetest.Values[topics.Receipt](es), 1)
	}

	p = newHarness(t)
	es := p.Handle(p.outputOf("a", `{"callbackService":"`+strings.Repeat("x", p.config.RecordLimit/4)+`"}`))
	dead := machinetest.Only[topics.DeadDelivery](t, es)
	require.Equal(t, reasonTooLarge, dead.Reason)
	require.Nil(t, dead.Delivery.Body)
	require.Empty(t, p.Read().Dead)
}

func TestNewestDeliveriesEndDeadIfTheRowLimitIsLowered(t *testing.T) {
	p := newHarness(t)
	for _, turn := range []string{"a", "b", "c"} {
		attempt(t, p.Handle(p.outputOf(turn+strings.Repeat("x", 60_000), harbor)))
	}
	p.config.RowLimit = minRecord - rowMargin
	p.RowLimit = p.config.RowLimit
	es := p.advance(time.Minute)
	for _, dead := range machinetest.Values[topics.DeadDelivery](es) {
		require.Equal(t, reasonNoRoom, dead.Reason)
	}
	require.Len(t, machinetest.Values[topics.Receipt](es), 2, "one fits")
}
