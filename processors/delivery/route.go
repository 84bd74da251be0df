package delivery

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// apply keeps a reply route until its output comes, or gives it to the delivery that waits for it. Tombstones say that
// a route was used or withdrawn; then its output does not name it.
func (e RouteGiven) apply(s *session) {
	if e.tombstone() {
		return
	}
	id := topics.RouteID(s.key, e.Cause)
	used := digests.Of(ofRoute, id)
	if s.remembers(used) || slices.ContainsFunc(s.row.Routes, func(r *ReplyRoute) bool { return r.Id == id }) {
		return
	}
	var token *string
	if text := topics.TokenOf(e.Route.Raw); strings.TrimSpace(text) != "" {
		token = &text
	}
	taken := false
	for _, d := range s.row.Open {
		if d.Phase == Phase_PHASE_ROUTE && d.RouteId == id {
			d.Token, d.Phase, d.DueMs = token, Phase_PHASE_PENDING, s.nowMS()
			taken = true
		}
	}
	if taken {
		s.remember(used)
		s.changed = true
		return
	}
	if len(e.Route.Raw) > maxToken {
		s.refuse(reasonRouteSize)
		return
	}
	s.keepRoute(&ReplyRoute{Id: id, Token: token, ExpiresMs: s.after(s.rules.RouteTTL)})
}

// keepRoute stores a route until its output names it. A session keeps maxRoutes of them, and no more than its row has
// room for; a new route evicts the oldest ones. Most old routes are never named: their message was withdrawn, or got a
// later route. If the output of an evicted route arrives all the same, its delivery waits Rules.RouteWait for the route,
// as for any route that is not there, and ends in a final receipt with reasonNoRoute.
func (s *session) keepRoute(r *ReplyRoute) {
	s.changed = true
	before := s.row.Routes
	s.row.Routes = append(slices.Clone(before), r)
	for len(s.row.Routes) > maxRoutes || !s.makeRoom() {
		if len(s.row.Routes) == 1 { // other things fill the row: to evict routes would not help
			s.row.Routes = before
			s.refuse(reasonRouteRoom)
			return
		}
		s.row.Routes = s.row.Routes[1:]
	}
}

// awaitRoute gives a delivery the token of its route, or lets it wait for the route.
func (s *session) awaitRoute(d *Delivery) {
	if r := s.takeRoute(d.RouteId); r != nil {
		d.Token = r.Token
		return
	}
	d.Phase, d.DueMs = Phase_PHASE_ROUTE, s.after(s.rules.RouteWait)
}

// takeRoute removes a route and returns it, nil if the session has none of that id. A repeat of its record is ignored.
func (s *session) takeRoute(id string) *ReplyRoute {
	i := slices.IndexFunc(s.row.Routes, func(r *ReplyRoute) bool { return r.Id == id })
	if i < 0 {
		return nil
	}
	r := s.row.Routes[i]
	s.row.Routes = slices.Delete(s.row.Routes, i, i+1)
	s.remember(digests.Of(ofRoute, id))
	s.changed = true
	return r
}

// dropRoute drops the route that an output names and that no delivery needs. The reply-to record may arrive after the
// output: then it is ignored.
func (s *session) dropRoute(id string) {
	used := digests.Of(ofRoute, id)
	if id == "" || s.takeRoute(id) != nil || s.remembers(used) {
		return
	}
	s.remember(used)
	s.changed = true
}

// expireRoutes drops the routes whose time has come.
func (s *session) expireRoutes() {
	n := len(s.row.Routes)
	s.row.Routes = slices.DeleteFunc(s.row.Routes, func(r *ReplyRoute) bool { return r.ExpiresMs <= s.nowMS() })
	s.changed = s.changed || len(s.row.Routes) != n
}
