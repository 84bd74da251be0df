package turn

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/topics"
)

// latest is the timestamp of a message whose record has none.
const latest = math.MaxInt64

func (s *transition) receiveRoute(e RouteGiven) {
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

// descriptor returns the route's descriptor for the output. With Config.Delivery a route_id replaces the bearer token, so
// that the token stays in the reply-to record. With Config.Channels the descriptor names no origin and no delegation: a route of
// reply-to is what a caller asked for.
func (e RouteGiven) descriptor(s *transition) topics.Raw {
	raw := e.Route.Raw
	if s.rules.Channels {
		raw = topics.WithoutChannel(raw)
	}
	if !s.rules.Delivery {
		return raw
	}
	return topics.WithoutToken(raw, topics.RouteID(s.key, e.Cause))
}

// boundTurn returns the turn of the message that a door wrote the route for, "" if it is not known: the door wrote no IDs, or a
// request ID says it.
func (e RouteGiven) boundTurn() string {
	prefix, ok := strings.CutSuffix(e.Cause, limits.RouteID)
	if !e.Own || !ok || !blank(e.Route.RequestID) {
		return ""
	}
	return turnID(e.Session, prefix+limits.MessageID)
}

// mayServe reports whether a route without a request ID may be that of a message. A message takes a route that was written for
// no particular message only if its own door wrote neither a route for it nor that it has none.
func mayServe(r *turnrow.ReplyRoute, a *turnrow.Accepted) bool {
	switch {
	case a.RequestId != nil || a.NoRoute || r.RequestId != nil:
		return false
	case r.TurnId != "":
		return r.TurnId == a.TurnId
	default:
		return !a.Bound && r.TimestampMs <= a.TimestampMs
	}
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

// unclaimed reports whether no unfinished message can use an open route. The oldest such route is evicted for a new one:
// its message has not arrived, or ended before the route arrived. If the message arrives later, its output has no route.
func (s *transition) unclaimed(r *turnrow.ReplyRoute) bool {
	for a := range s.unfinished() {
		if sameRequest(a.RequestId, r.RequestId) && !a.NoRoute {
			return false
		}
	}
	return true
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

// takeRoute gives a message without request id the open route that was written for it, or else the oldest open unnamed route that
// is not newer than itself.
func (s *transition) takeRoute(a *turnrow.Accepted) {
	for i, r := range s.row.Routes {
		if s.live(r) != nil && mayServe(r, a) {
			s.row.Routes = slices.Delete(s.row.Routes, i, i+1)
			a.Route = r
			return
		}
	}
}

// expectRoute gives a message the descriptor that came with it, for the case that its route's own record is read after its turn has
// ended. Only processors/delivery can serve such a route: it reads the token itself.
func (s *transition) expectRoute(a *turnrow.Accepted, descriptor topics.Raw) {
	if !s.rules.Delivery || a.Route != nil || a.NoRoute || len(descriptor) > maxDescriptor ||
		topics.RouteIDOf(descriptor) == "" || topics.TokenOf(descriptor) != "" {
		return
	}
	if s.rules.Channels {
		descriptor = topics.WithoutChannel(descriptor)
	}
	a.Route = &turnrow.ReplyRoute{
		RequestId: a.RequestId, ReplyTo: bytes.Clone(descriptor), TimestampMs: max(a.TimestampMs, 0),
		ExpiresMs: s.after(s.rules.RouteTTL),
	}
}

// routeOf returns the reply descriptor of the output of a message that ends, nil if there is none.
func (s *transition) routeOf(a *turnrow.Accepted) topics.Raw {
	if a.NoRoute {
		return ownRoute(a)
	}
	return s.useRoute(a)
}

// useRoute removes the route of a message that ends and returns its descriptor, nil if it has none. Each route is used
// once.
func (s *transition) useRoute(a *turnrow.Accepted) topics.Raw {
	if a.RequestId == nil {
		r := s.live(a.Route)
		if r == nil {
			return nil
		}
		s.expectTombstone()
		return r.ReplyTo
	}
	for i, r := range s.row.Routes {
		if sameRequest(r.RequestId, a.RequestId) {
			s.row.Routes = slices.Delete(s.row.Routes, i, i+1)
			if s.live(r) == nil {
				return nil
			}
			return r.ReplyTo
		}
	}
	if r := s.live(a.Route); r != nil {
		return r.ReplyTo
	}
	return nil
}

// expectTombstone records that an unnamed route was used: FlightDeck's consumer of message-output will write a tombstone
// for it. With Config.Delivery that consumer serves no route, because outputs have no token for it. processors/delivery
// does, and its tombstones are known by their turntable.id: every other tombstone withdraws a route.
func (s *transition) expectTombstone() {
	if s.rules.Delivery {
		return
	}
	s.row.UsedRoutesMs = append(s.row.UsedRoutesMs, s.nowMS())
	if n := len(s.row.UsedRoutesMs) - maxUsedRoutes; n > 0 {
		s.row.UsedRoutesMs = s.row.UsedRoutesMs[n:]
	}
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

// live returns the route, or nil if it has expired.
func (s *transition) live(r *turnrow.ReplyRoute) *turnrow.ReplyRoute {
	if r == nil || r.ExpiresMs <= s.nowMS() {
		return nil
	}
	return r
}

// expireRoutes drops the routes that have expired.
func (s *transition) expireRoutes() {
	n := len(s.row.Routes)
	s.row.Routes = slices.DeleteFunc(s.row.Routes, func(r *turnrow.ReplyRoute) bool { return s.live(r) == nil })
	s.changed = s.changed || len(s.row.Routes) != n
	for a := range s.unfinished() {
		if a.Route != nil && s.live(a.Route) == nil {
			a.Route, s.changed = nil, true
		}
	}
}
