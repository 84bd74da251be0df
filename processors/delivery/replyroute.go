package delivery

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/topics"
)

// apply gives a reply route to the deliveries that wait for it, or stores it until its output arrives. A tombstone says
// that a route was used or withdrawn; no output will name that route, so it is ignored.
func (e routeGiven) apply(t *transition) {
	if e.Tombstone() {
		return
	}
	id := topics.RouteID(t.key, e.ID)
	used := digests.Of(ofRoute, id)
	if t.remembers(used) || slices.ContainsFunc(t.row.Routes, func(r *deliveryrow.ReplyRoute) bool { return r.Id == id }) {
		return
	}
	var token *string
	if text := topics.TokenOf(e.Route.Raw); strings.TrimSpace(text) != "" {
		token = &text
	}
	taken := false
	for _, d := range t.row.Open {
		if d.Phase == deliveryrow.Phase_PHASE_ROUTE && d.RouteId == id {
			d.Token, d.Phase, d.DueMs = token, deliveryrow.Phase_PHASE_PENDING, t.nowMS()
			taken = true
		}
	}
	route := &deliveryrow.ReplyRoute{Id: id, Token: token, ExpiresMs: t.after(t.config.RouteTTL)}
	if taken || t.usedEarly(route, writtenMS(e.Record)) {
		t.remember(used)
		t.changed = true
		return
	}
	if len(e.Route.Raw) > maxDescriptor {
		t.DeadLetter(reasonRouteSize)
		return
	}
	t.keepRoute(route)
}

// keepRoute stores a route until an output names it. A session keeps maxRoutes of them, and no more than its row has
// room for; a new route evicts the oldest ones. Most old routes are never named: their message was withdrawn, or got a
// later route. If the output of an evicted route arrives nevertheless, its delivery waits Config.RouteWait, as for any
// missing route, and ends dead with reasonNoRoute.
func (t *transition) keepRoute(r *deliveryrow.ReplyRoute) {
	t.changed = true
	before := t.row.Routes
	t.row.Routes = append(slices.Clone(before), r)
	for len(t.row.Routes) > maxRoutes || !t.makeRoom() {
		if len(t.row.Routes) == 1 { // deliveries fill the row: evicting routes would not make room
			t.row.Routes = before
			t.DeadLetter(reasonRouteRoom)
			return
		}
		t.row.Routes = t.row.Routes[1:]
	}
}

// awaitRoute gives a delivery the token of its route, or lets it wait for the route.
func (t *transition) awaitRoute(d *deliveryrow.Delivery) {
	if r := t.takeRoute(d.RouteId); r != nil {
		d.Token = r.Token
		return
	}
	d.Phase, d.DueMs = deliveryrow.Phase_PHASE_ROUTE, t.after(t.config.RouteWait)
}

// takeRoute removes the route with an ID and returns it, nil if the session has none. From then on, repeats of the
// route's record are ignored.
func (t *transition) takeRoute(id string) *deliveryrow.ReplyRoute {
	i := slices.IndexFunc(t.row.Routes, func(r *deliveryrow.ReplyRoute) bool { return r.Id == id })
	if i < 0 {
		return nil
	}
	r := t.row.Routes[i]
	t.row.Routes = slices.Delete(t.row.Routes, i, i+1)
	t.remember(digests.Of(ofRoute, id))
	t.changed = true
	return r
}

// dropRoute drops the route that an output names and no delivery needs. If the route's record arrives after the output,
// it is ignored.
func (t *transition) dropRoute(id string) {
	used := digests.Of(ofRoute, id)
	if id == "" || t.takeRoute(id) != nil || t.remembers(used) {
		return
	}
	t.remember(used)
	t.changed = true
}

// supersedeRoutes drops the first route with a token, and those before it. Its output has the descriptor itself, without a
// route_id: FlightDeck's processing wrote it, whose table keeps only the latest route of a session. No later output can need
// the dropped routes. If they stayed, the tombstone after the delivery would not be written, and FlightDeck's processing would
// send later outputs of the session to the same receiver. found is false if no stored route has the token.
func (t *transition) supersedeRoutes(token string) (found bool) {
	used := slices.IndexFunc(t.row.Routes, func(r *deliveryrow.ReplyRoute) bool { return r.GetToken() == token })
	for range used + 1 {
		t.takeRoute(t.row.Routes[0].Id)
	}
	return used >= 0
}

// expireRoutes drops the routes and the early outputs whose Config.RouteTTL has passed.
func (t *transition) expireRoutes() {
	t.expireEarly()
	n := len(t.row.Routes)
	t.row.Routes = slices.DeleteFunc(t.row.Routes, func(r *deliveryrow.ReplyRoute) bool { return r.ExpiresMs <= t.nowMS() })
	t.changed = t.changed || len(t.row.Routes) != n
}
