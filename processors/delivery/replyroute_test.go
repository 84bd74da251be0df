package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func serviceless(routeID string) string {
	return fmt.Sprintf(`{"channel":"c","route_id":%q}`, routeID)
}

func TestOutputWithoutServiceDropsTheRouteItNames(t *testing.T) {
	for _, unrouted := range []string{"", topics.KindWebSocket} {
		for _, first := range []string{"route", "output"} {
			t.Run(unrouted+" "+first, func(t *testing.T) {
				p := newHarness(t, func(c *Config) { c.Unrouted = topics.Destination{Kind: unrouted} })
				route, id := p.routeOf(`{"channel":"c","bearerToken":"t"}`)
				output := p.outputOf("t1", serviceless(id))
				events := []event{route, output, route, output}
				if first == "output" {
					events = []event{output, route, output, route}
				}
				attempts := 0
				for _, e := range events {
					attempts += len(machinetest.Values[topics.Delivery](p.Handle(e)))
				}
				require.Empty(t, p.Read().Routes)
				require.Equal(t, unrouted != "", attempts == 1, "one delivery, if outputs without a service have a destination")
			})
		}
	}
}

func TestUsedRoutesLeaveRoomForNewOnes(t *testing.T) {
	p := newHarness(t)
	for i := range 2 * maxRoutes {
		route, id := p.routeOf(`{"channel":"c"}`)
		require.Empty(t, p.Handle(route))
		require.Empty(t, p.Handle(p.outputOf(fmt.Sprint("t", i), serviceless(id))))
	}
	route, id := p.routeOf(harbor)
	require.Empty(t, p.Handle(route))
	attempt(t, p.Handle(p.outputOf("last", named(id))))
}

// FlightDeck's processing keeps the latest route of a session and writes its descriptor into every output until a tombstone.
func TestOutputWithItsDescriptorUsesUpTheRoute(t *testing.T) {
	for name, c := range map[string]struct {
		routes  []string
		output  string
		removed bool
	}{
		"its own":                     {[]string{one}, one, true},
		"without a token":             {[]string{`{"callbackService":"harbor"}`}, `{"callbackService":"harbor","bearerToken":" "}`, true},
		"after a superseded route":    {[]string{one, two}, two, true},
		"before another":              {[]string{one, two}, one, false},
		"before another like it":      {[]string{one, one}, one, false},
		"of a route not read yet":     {[]string{two}, one, false},
		"in a session without routes": {nil, one, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			for _, descriptor := range c.routes {
				route, _ := p.routeOf(descriptor)
				require.Empty(t, p.Handle(route))
			}
			a := attempt(t, p.Handle(p.outputOf("t1", c.output)))
			require.Len(t, removals(p.Handle(p.receiptOf(a, topics.OutcomeDelivered))), map[bool]int{true: 1}[c.removed])
		})
	}
}

// No output names withdrawn and superseded routes.
func TestNewRouteEvictsTheOldest(t *testing.T) {
	p := newHarness(t)
	var ids []string
	for range maxRoutes + 1 {
		route, id := p.routeOf(harbor)
		require.Empty(t, p.Handle(route))
		ids = append(ids, id)
	}
	require.Len(t, p.Read().Routes, maxRoutes)
	for i, id := range ids[1:] {
		require.Equal(t, "t0ken", *attempt(t, p.Handle(p.outputOf(fmt.Sprint("t", i), named(id)))).Token)
	}
}

func TestUnusedRoutesExpire(t *testing.T) {
	p := newHarness(t)
	route, _ := p.routeOf(harbor)
	p.Handle(route)
	p.advance(24 * time.Hour)
	require.Empty(t, p.Read().GetRoutes())
}

func TestOutputOfAnEvictedRouteEndsInOneReceipt(t *testing.T) {
	p := newHarness(t)
	evicted, id := p.routeOf(harbor)
	p.Handle(evicted)
	for range maxRoutes {
		route, _ := p.routeOf(harbor)
		p.Handle(route)
	}
	require.Empty(t, p.Handle(p.outputOf("t1", named(id))))
	es := p.advance(p.config.RouteWait)
	require.Equal(t, reasonNoRoute, machinetest.Only[topics.DeadDelivery](t, es).Reason)
	require.Equal(t, topics.OutcomeDead, machinetest.Only[topics.Receipt](t, es).Outcome)
	require.Empty(t, p.Handle(p.outputOf("t1", named(id))))
}

func TestRoutesOfAFullRowAreEvictedOldestFirst(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = minRecord, minRecord-rowMargin })
	large := `{"callbackService":"harbor","bearerToken":"` + strings.Repeat("x", 15<<10) + `"}`
	var ids []string
	for range 5 {
		route, id := p.routeOf(large)
		require.Empty(t, p.Handle(route))
		ids = append(ids, id)
	}
	require.Len(t, p.Read().Routes, 3)
	attempt(t, p.Handle(p.outputOf("t1", named(ids[4]))))
}

func TestRouteEvictsNothingIfDeliveriesFillTheRow(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = minRecord, minRecord-rowMargin })
	route, id := p.routeOf(harbor)
	p.Handle(route)
	attempt(t, p.Handle(p.outputOf(strings.Repeat("x", 46<<10), `{"callbackService":"harbor"}`)))
	large, _ := p.routeOf(`{"callbackService":"harbor","bearerToken":"` + strings.Repeat("x", 20<<10) + `"}`)
	require.Equal(t, reasonRouteRoom, machinetest.Reason(t, p.Handle(large)))
	require.Equal(t, id, p.Read().Routes[0].Id)
}

func TestRouteThatIsTooLargeIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	route, _ := p.routeOf(`{"callbackService":"` + strings.Repeat("x", maxDescriptor) + `"}`)
	require.Equal(t, reasonRouteSize, machinetest.Reason(t, p.Handle(route)))
}

// The newest routes deliver, however many routes a session had and whatever happened to them, and every output with a
// service ends in one final receipt.
func TestTheNewestRoutesAlwaysDeliver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newHarness(t, func(c *Config) { c.OpenLimit = 1000 })
		finals, want, turns := 0, 0, 0
		output := func(descriptor string) effects {
			turns++
			es := p.Handle(p.outputOf(fmt.Sprint("t", turns), descriptor))
			for _, a := range machinetest.Values[topics.Delivery](es) {
				finals += len(machinetest.Values[topics.Receipt](p.Handle(p.receiptOf(a, topics.OutcomeDelivered))))
			}
			return es
		}
		var all, kept []string // IDs of unused routes; kept are those that the session still has
		for range rapid.SampledFrom([]int{3, 70}).Draw(t, "routes") {
			route, id := p.routeOf(harbor)
			require.Empty(t, p.Handle(route))
			kept = append(kept, id)
			kept = kept[max(0, len(kept)-maxRoutes):]
			switch rapid.SampledFrom([]string{"unused", "unused", "used", "no service", "withdrawn"}).Draw(t, "becomes") {
			case "unused":
				all = append(all, id)
			case "used":
				want++
				require.Len(t, machinetest.Values[topics.Delivery](output(named(id))), 1)
				kept = kept[:len(kept)-1]
			case "no service":
				require.Empty(t, output(serviceless(id)))
				kept = kept[:len(kept)-1]
			case "withdrawn": // by a tombstone that does not say which route
				require.Empty(t, p.Handle(routeGiven{p.tombstone(), topics.Route{}}))
			}
			require.Len(t, p.Read().GetRoutes(), len(kept))
		}
		for _, id := range all {
			want++
			attempts := machinetest.Values[topics.Delivery](output(named(id)))
			require.Equal(t, slices.Contains(kept, id), len(attempts) == 1)
		}
		finals += len(machinetest.Values[topics.Receipt](p.advance(p.config.RouteWait)))
		require.Equal(t, want, finals)
	})
}
