package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// The records of a session as FlightDeck writes them. Each output has the descriptor of the latest route.
const one, two = `{"callbackService":"harbor","bearerToken":"1"}`, `{"callbackService":"harbor","bearerToken":"2"}`

// Kafka has no order between message-output and reply-to.
func TestOutputUsesUpARouteThatIsReadAfterIt(t *testing.T) {
	for name, steps := range map[string][]string{
		"while the delivery is open":                  {"output", "route", "delivered"},
		"after the delivery":                          {"output", "delivered", "route"},
		"after the delivery, with a superseded route": {"superseded", "output", "delivered", "route"},
		"while it is open, with a superseded route":   {"superseded", "output", "route", "delivered"},
		"repeatedly":                                     {"output", "route", "output", "route", "delivered", "route", "output"},
		"while open and its attempt failed":              {"output", "failed", "route", "delivered"},
		"after the delivery, with a route after another": {"superseded", "superseded", "output", "delivered", "route"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			route, _ := p.routeOf(one)
			output := p.outputOf("t1", one)
			var a topics.Delivery
			removed := 0
			for _, step := range steps {
				var es effects
				switch step {
				case "superseded":
					older, _ := p.routeOf(two)
					es = p.Handle(older)
				case "output":
					es = p.Handle(output)
				case "route":
					es = p.Handle(route)
				case "failed":
					es = append(p.Handle(p.receiptOf(a, topics.OutcomeFailed)), p.advance(time.Minute)...)
				case "delivered":
					es = p.Handle(p.receiptOf(a, topics.OutcomeDelivered))
				}
				for _, r := range machinetest.Values[topics.Delivery](es) {
					a = r
				}
				removed += len(removals(es))
			}
			require.Equal(t, 1, removed, "one tombstone")
			require.Empty(t, p.Read().Routes)
			require.Empty(t, p.Read().Early)
		})
	}
}

// A service may use one token for all its messages.
func TestRouteThatIsWrittenAfterAnEarlyOutputIsKept(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", one)))
	p.Now = p.Now.Add(time.Millisecond)
	next, _ := p.routeOf(one)
	require.Empty(t, p.Handle(next))
	require.Len(t, p.Read().Routes, 1)
	require.Empty(t, removals(p.Handle(p.receiptOf(a, topics.OutcomeDelivered))), "it would remove the next route too")
}

func TestEarlyOutputsAreBounded(t *testing.T) {
	p := newHarness(t)
	for i := range 2 * maxRoutes {
		a := attempt(t, p.Handle(p.outputOf(fmt.Sprint("t", i), one)))
		p.Handle(p.receiptOf(a, topics.OutcomeDelivered))
	}
	require.Len(t, p.Read().Early, maxRoutes)
	p.advance(p.config.RouteTTL)
	p.Handle(p.outputOf("last", two))
	require.Len(t, p.Read().Early, 1, "older ones have expired")
}

// However outputs and routes are interleaved, a session whose outputs have all been delivered has no route left, and reply-to has
// a tombstone after the last of them.
func TestUsedRoutesLeaveATombstoneInAnyOrderOfTopics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newHarness(t)
		var routes, outputs []event
		for i := range rapid.IntRange(1, 5).Draw(t, "turns") {
			p.Now = p.Now.Add(time.Millisecond)
			token := rapid.SampledFrom([]int{i, i, 100}).Draw(t, "token")
			descriptor := fmt.Sprintf(`{"callbackService":"harbor","bearerToken":"%d"}`, token)
			route, _ := p.routeOf(descriptor)
			p.Now = p.Now.Add(time.Millisecond)
			routes = append(routes, route)
			outputs = append(outputs, p.outputOf(fmt.Sprint("t", i), descriptor))
		}
		var open []topics.Delivery
		last := ""
		note := func(es effects) {
			open = append(open, machinetest.Values[topics.Delivery](es)...)
			if len(removals(es)) > 0 {
				last = "tombstone"
			}
		}
		for len(routes)+len(outputs)+len(open) > 0 {
			switch next := rapid.SampledFrom([]string{"route", "output", "delivered"}).Draw(t, "next"); {
			case next == "route" && len(routes) > 0:
				note(p.Handle(routes[0]))
				routes = routes[1:]
			case next == "output" && len(outputs) > 0:
				last = ""
				note(p.Handle(outputs[0]))
				outputs = outputs[1:]
			case next == "delivered" && len(open) > 0:
				a := open[0]
				open = open[1:]
				note(p.Handle(p.receiptOf(a, topics.OutcomeDelivered)))
			}
		}
		require.Empty(t, p.Read().Routes)
		require.Equal(t, "tombstone", last, "after the last delivery")
	})
}

// The row is kept for as long as a route may be late, and no longer.
func TestEarlyOutputIsRememberedForAsLongAsARoute(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RememberFor, c.RouteTTL = time.Hour, 10*time.Hour })
	route, _ := p.routeOf(one)
	a := attempt(t, p.Handle(p.outputOf("t1", one)))
	p.Handle(p.receiptOf(a, topics.OutcomeDelivered))
	p.advance(9 * time.Hour)
	require.Empty(t, p.Handle(route))
	require.Empty(t, p.Read().Routes)
	p.advance(time.Hour)
	require.Nil(t, p.Read(), "nothing is left to remember")
}
