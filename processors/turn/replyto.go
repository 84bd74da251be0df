package turn

import (
	"bytes"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveRoute(e routeGiven) {
	switch {
	case e.tombstone() && e.Own: // written by processors/delivery for a route that was used
	case e.tombstone():
		s.withdrawRoute()
	case len(e.Route.Raw) > maxDescriptor || e.Route.RequestID != nil && len(*e.Route.RequestID) > maxID:
		s.deadLetter(reasonRouteSize)
	default:
		turn := e.boundTurn()
		if s.hasEnded(turn) {
			if !s.rules.Delivery { // else the output names the route, and processors/delivery reads it itself
				s.deadLetter(reasonLateRoute)
			}
			return
		}
		s.addRoute(&turnrow.ReplyRoute{
			RequestId:   notBlank(e.Route.RequestID),
			TurnId:      turn,
			ReplyTo:     bytes.Clone(e.descriptor(s)), // copied, because the row outlives the record
			TimestampMs: max(e.At.UnixMilli(), 0),
			ExpiresMs:   s.after(s.rules.RouteTTL),
		})
	}
}

// boundTurn returns the turn of the message that a door wrote the route for, "" if it is not known: the door wrote no IDs, or a
// request ID says it.
func (e routeGiven) boundTurn() string {
	prefix, ok := strings.CutSuffix(e.Cause, limits.RouteID)
	if !e.Own || !ok || !blank(e.Route.RequestID) {
		return ""
	}
	return turnID(e.Session, prefix+limits.MessageID)
}

// descriptor returns the route's descriptor for the output. With Config.Delivery a route_id replaces the bearer token, so
// that the token stays in the reply-to record. With Config.Channels the descriptor names no origin and no delegation: a route of
// reply-to is what a caller asked for.
func (e routeGiven) descriptor(s *transition) topics.Raw {
	raw := e.Route.Raw
	if s.rules.Channels {
		raw = topics.WithoutChannel(raw)
	}
	if !s.rules.Delivery {
		return raw
	}
	return topics.WithoutToken(raw, topics.RouteID(s.key, e.Cause))
}

// addRoute stores a route: with the message that it serves if that has arrived, else until that arrives.
func (s *transition) addRoute(r *turnrow.ReplyRoute) {
	for a := range s.unfinished() {
		if before := a.Route; mayServe(r, a) && (a.Bound || s.live(before) == nil) {
			a.Route = r
			s.keepRoute(func() { a.Route = before })
			return
		}
	}
	kept := s.row.Routes
	if r.RequestId != nil {
		same := func(k *turnrow.ReplyRoute) bool { return sameRequest(k.RequestId, r.RequestId) }
		kept = slices.DeleteFunc(slices.Clone(kept), same)
	}
	if len(kept) >= maxRoutes {
		i := slices.IndexFunc(kept, s.unclaimed)
		if i < 0 {
			s.deadLetter(reasonTooManyRoute)
			return
		}
		kept = slices.Delete(slices.Clone(kept), i, i+1)
	}
	before := s.row.Routes
	s.row.Routes = append(slices.Clone(kept), r)
	s.keepRoute(func() { s.row.Routes = before })
}

// keepRoute dead-letters the route and calls undo if the row has no room for it. Routes displace only memories.
func (s *transition) keepRoute(undo func()) {
	if !s.makeRoomUpTo(memories) {
		undo()
		s.deadLetter(reasonNoRoom)
		return
	}
	s.changed = true
}

// unclaimed reports whether no unfinished message can use an open route. The oldest such route is evicted for a new one:
// its message has not arrived, or ended before the route arrived. If the message arrives later, its output has no route.
func (s *session) unclaimed(r *turnrow.ReplyRoute) bool {
	for a := range s.unfinished() {
		if sameRequest(a.RequestId, r.RequestId) && !a.NoRoute {
			return false
		}
	}
	return true
}

// withdrawRoute applies a tombstone that processors/delivery did not write. FlightDeck's consumer writes one after it has
// served a route. That tombstone belongs to the used route and must not withdraw a route that was opened since. Used
// routes are counted in both modes: those that were used before Config.Delivery was switched on may still get their
// tombstones.
func (s *transition) withdrawRoute() {
	used := s.row.UsedRoutesMs
	for len(used) > 0 && used[0] <= s.now.Add(-s.rules.RouteTTL).UnixMilli() {
		used = used[1:]
	}
	if len(used) > 0 {
		s.row.UsedRoutesMs, s.changed = used[1:], true
		return
	}
	var oldest *turnrow.ReplyRoute
	drop := func() {}
	older := func(r *turnrow.ReplyRoute) bool {
		return s.live(r) != nil && r.RequestId == nil && (oldest == nil || r.ExpiresMs < oldest.ExpiresMs)
	}
	for a := range s.unfinished() {
		if older(a.Route) {
			oldest, drop = a.Route, func() { a.Route = nil }
		}
	}
	for i, r := range s.row.Routes {
		if older(r) {
			oldest, drop = r, func() { s.row.Routes = slices.Delete(s.row.Routes, i, i+1) }
		}
	}
	drop()
	s.changed = true // even if there was none: a repeat must not withdraw a later route
}
