package turn

import (
	"bytes"
	"math"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// latest is the timestamp of a message whose record has none.
const latest = math.MaxInt64

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

// live returns the route, or nil if it has expired.
func (s *session) live(r *turnrow.ReplyRoute) *turnrow.ReplyRoute {
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
