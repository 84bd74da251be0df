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
	switch {
	case len(e.Route.Raw) > maxToken:
		s.refuse(reasonRouteSize)
		return
	case len(s.row.Routes) >= maxRoutes:
		s.refuse(reasonManyRoutes)
		return
	}
	s.row.Routes = append(s.row.Routes, &ReplyRoute{Id: id, Token: token, ExpiresMs: s.after(s.rules.RouteTTL)})
	s.changed = true
	if !s.makeRoom() {
		s.row.Routes = s.row.Routes[:len(s.row.Routes)-1]
		s.refuse(reasonRouteRoom)
	}
}

// awaitRoute gives a delivery the token of its route, or lets it wait for the route.
func (s *session) awaitRoute(d *Delivery) {
	for i, r := range s.row.Routes {
		if r.Id == d.RouteId {
			d.Token = r.Token
			s.row.Routes = slices.Delete(s.row.Routes, i, i+1)
			s.remember(digests.Of(ofRoute, d.RouteId))
			s.changed = true
			return
		}
	}
	d.Phase, d.DueMs = Phase_PHASE_ROUTE, s.after(s.rules.RouteWait)
}

// expireRoutes drops the routes whose time has come.
func (s *session) expireRoutes() {
	n := len(s.row.Routes)
	s.row.Routes = slices.DeleteFunc(s.row.Routes, func(r *ReplyRoute) bool { return r.ExpiresMs <= s.nowMS() })
	s.changed = s.changed || len(s.row.Routes) != n
}
