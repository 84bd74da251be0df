package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// simulation generates what surrounds one session: turns, routes, sinks that answer once, twice, late or never, and an
// arbitrary table of routes.
type simulation struct {
	*harness
	services []string
	sent     []event                    // for repeats
	attempts map[string]topics.Delivery // by record id
	waiting  []topics.Delivery          // without a receipt
	finals   map[string]topics.Receipt  // by record id
	requeued map[string]int
	reported map[string]bool // the responses in receipts
}

func newSimulation(t tb) *simulation {
	p := newHarness(t, func(c *Config) {
		c.Services = map[string]Service{
			"ordered": {Ordered: true, Budget: 20 * time.Second},
			"plain":   {Attempts: 5},
		}
		c.Channels = true
		c.RememberFor = 1000 * 24 * time.Hour // longer than the test, because an expired digest allows a repeat
	})
	return &simulation{
		harness: p, services: []string{"ordered", "plain"}, attempts: map[string]topics.Delivery{},
		finals: map[string]topics.Receipt{}, requeued: map[string]int{}, reported: map[string]bool{},
	}
}

func (w *simulation) deliver(e event) {
	w.TB.Helper()
	w.Now = w.Now.Add(time.Millisecond)
	w.sent = append(w.sent, e)
	w.check(w.Handle(e))
}

// check checks the effects of an event and stores them.
func (w *simulation) check(es effects) {
	w.TB.Helper()
	for _, e := range es {
		switch v := e.Value.(type) {
		case topics.Delivery:
			require.NotContains(w.TB, w.attempts, e.ID, "an attempt is emitted once")
			require.NotContains(w.TB, w.finals, fmt.Sprintf("%s/final/%d", v.DeliveryID, w.requeued[v.DeliveryID]),
				"no attempt after the final receipt")
			w.attempts[e.ID] = v
			w.waiting = append(w.waiting, v)
			w.checkAttempt(v)
		case topics.Receipt:
			require.NotContains(w.TB, w.finals, e.ID, "one final receipt per round")
			w.finals[e.ID] = v
		}
	}
}

func (w *simulation) checkAttempt(a topics.Delivery) {
	w.TB.Helper()
	d := findDelivery(w.Read(), a.DeliveryID)
	service := w.config.serviceOf(a.Route)
	require.Less(w.TB, w.Now.UnixMilli(), d.StartedMs+d.CreditMs+service.Budget.Milliseconds(), "within its budget")
	require.Less(w.TB, w.Now.UnixMilli(), d.ExpiresMs)
	require.Less(w.TB, len(d.Failures), service.Attempts)
	if a.Route.Kind == topics.KindChannel {
		require.Equal(w.TB, place, string(a.Channel), "every attempt has its origin")
		require.True(w.TB, a.Progress == nil || w.reported[a.DeliveryID+string(a.Progress)], "of an attempt of the delivery")
	} else {
		require.Nil(w.TB, a.Channel)
		require.Nil(w.TB, a.Progress)
	}
	if service.Ordered {
		for _, other := range w.Read().Open {
			if other == d || other.Id == d.Id {
				break
			}
			require.NotEqual(w.TB, routeOf(other), a.Route, "an earlier delivery of the route is open")
		}
	}
}

func findDelivery(s *deliveryrow.State, id string) *deliveryrow.Delivery {
	return s.Open[slices.IndexFunc(s.Open, func(d *deliveryrow.Delivery) bool { return d.Id == id })]
}

func (w *simulation) open() int {
	if s := w.Read(); s != nil {
		return len(s.Open)
	}
	return 0
}

func TestEveryDeliveryEndsInOneFinalReceipt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		outputs := rapid.IntRange(1, 5).Draw(t, "outputs")
		var queue []event // outputs and routes, in a random order
		for i := range outputs {
			service := rapid.SampledFrom(w.services).Draw(t, "service")
			turn := fmt.Sprintf("t%d", i)
			switch rapid.IntRange(0, 5).Draw(t, "route") {
			case 4:
				queue = append(queue, w.outputOf(turn, place))
			case 5:
				queue = append(queue, w.messageOf(turn, place))
			case 0:
				queue = append(queue, w.outputOf(turn, fmt.Sprintf(`{"callbackService":%q}`, service)))
			case 1: // the route never arrives
				queue = append(queue, w.outputOf(turn, fmt.Sprintf(`{"callbackService":%q,"route_id":"r%d"}`, service, i)))
			default:
				route, id := w.routeOf(fmt.Sprintf(`{"callbackService":%q,"bearerToken":"t"}`, service))
				queue = append(queue, route,
					w.outputOf(turn, fmt.Sprintf(`{"callbackService":%q,"route_id":%q}`, service, id)))
			}
		}
		queue = rapid.Permutation(queue).Draw(t, "order")
		for range rapid.IntRange(0, 120).Draw(t, "moves") {
			w.move(t, &queue)
		}
		for _, e := range queue {
			w.deliver(e)
		}
		w.gates = map[string]gate{}
		for w.open() > 0 {
			if n := len(w.waiting); n > 0 && rapid.Bool().Draw(t, "answer") {
				a := w.waiting[n-1]
				w.waiting = w.waiting[:n-1]
				w.deliver(w.receiptOf(a, topics.OutcomeDelivered))
				continue
			}
			es, ok := w.fireNext()
			require.True(t, ok, "an open delivery has a deadline")
			w.check(es)
		}
		for _, e := range w.sent {
			w.deliver(e) // repeat everything
		}
		rounds := outputs
		for _, n := range w.requeued {
			rounds += n
		}
		require.Len(t, w.finals, rounds)
		require.Zero(t, w.open())
	})
}

// move applies one random event.
func (w *simulation) move(t *rapid.T, queue *[]event) {
	switch rapid.SampledFrom([]string{
		"output", "output", "receipt", "receipt", "receipt", "receipt", "again", "lose", "time", "time", "gate", "requeue",
	}).Draw(t, "move") {
	case "output":
		if len(*queue) > 0 {
			w.deliver((*queue)[0])
			*queue = (*queue)[1:]
		}
	case "receipt":
		if len(w.waiting) > 0 {
			i := rapid.IntRange(0, len(w.waiting)-1).Draw(t, "which")
			w.deliver(w.receiptOf(w.waiting[i], rapid.SampledFrom([]topics.Outcome{
				topics.OutcomeDelivered, topics.OutcomeFailed, topics.OutcomeFailed, topics.OutcomeDeferred,
				topics.OutcomeRefused,
			}).Draw(t, "outcome"), func(r *topics.Receipt) {
				r.RetryAfterMS = rapid.Int64Range(-1, 30_000).Draw(t, "retry after")
				if rapid.Bool().Draw(t, "responds") {
					r.Response = topics.Raw(fmt.Sprintf(`{"attempt":%d}`, r.Attempt))
					w.reported[r.DeliveryID+string(r.Response)] = true
				}
			}))
			if rapid.Bool().Draw(t, "once") {
				w.waiting = slices.Delete(w.waiting, i, i+1)
			}
		}
	case "again":
		if len(w.sent) > 0 {
			w.deliver(rapid.SampledFrom(w.sent).Draw(t, "repeat"))
		}
	case "lose":
		if n := len(w.waiting); n > 0 {
			w.waiting = w.waiting[:n-1]
		}
	case "time":
		if s := w.Read(); s != nil && len(s.Open)+len(s.Dead)+len(s.Routes) > 0 {
			es, _ := w.fireNext()
			w.check(es)
		}
	case "gate":
		w.gates["http/"+rapid.SampledFrom(w.services).Draw(t, "route")] = gate{
			OpenUntilMS: w.Now.UnixMilli() + rapid.Int64Range(-1000, 20_000).Draw(t, "open"),
			InFlight:    rapid.Int64Range(0, 40).Draw(t, "in flight"),
		}
	case "requeue":
		if s := w.Read(); s != nil && len(s.Dead) > 0 {
			id := rapid.SampledFrom(s.Dead).Draw(t, "dead").Id
			w.requeued[id]++
			w.deliver(w.requeueOf(id))
		}
	}
}

func TestEqualEventsGiveEqualOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := func(p *harness, moves []int) (all effects) {
			route, id := p.routeOf(harbor)
			all = append(all, p.Handle(route)...)
			es := p.Handle(p.outputOf("t1", named(id)))
			for _, m := range moves {
				all = append(all, es...)
				outcome := []topics.Outcome{topics.OutcomeFailed, topics.OutcomeDeferred, topics.OutcomeDelivered}[m]
				if list := machinetest.Values[topics.Delivery](es); len(list) > 0 {
					es = p.Handle(p.receiptOf(list[0], outcome))
					continue
				}
				es, _ = p.fireNext()
			}
			return append(all, es...)
		}
		moves := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 40).Draw(t, "moves")
		one, two := newHarness(t), newHarness(t)
		require.Equal(t, run(one, moves).Records(), run(two, moves).Records())
		require.Equal(t, one.Row, two.Row)
	})
}
