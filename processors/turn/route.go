package turn

import (
	"bytes"
	"iter"
	"math"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// latest is the timestamp of a message whose producer had no clock.
const latest = math.MaxInt64

func (e RouteGiven) apply(s *session) {
	switch {
	case e.tombstone() && e.Own: // our own delivery's: its route was used
	case e.tombstone():
		s.withdrawRoute()
	case len(e.Route.Raw) > maxDescriptor || e.Route.RequestID != nil && len(*e.Route.RequestID) > maxID:
		s.refuse(reasonRouteSize)
	default:
		s.addRoute(&ReplyRoute{
			RequestId:   named(e.Route.RequestID),
			ReplyTo:     bytes.Clone(e.descriptor(s)), // the row's own: it outlives the record
			TimestampMs: max(e.At.UnixMilli(), 0),
			ExpiresMs:   s.after(s.rules.RouteTTL),
		})
	}
}

// descriptor is what the output says of the route: all of it, or all but the token where deliveries are made by us (R28).
func (e RouteGiven) descriptor(s *session) topics.Raw {
	if !s.rules.Delivery {
		return e.Route.Raw
	}
	return topics.WithoutToken(e.Route.Raw, topics.RouteID(s.key, e.Cause))
}

// addRoute keeps a route: with the message it serves where that is known already, else until that comes.
func (s *session) addRoute(r *ReplyRoute) {
	if r.RequestId == nil {
		for a := range s.unfinished() {
			if a.RequestId == nil && s.live(a.Route) == nil && a.TimestampMs >= r.TimestampMs {
				a.Route = r
				s.keepRoute(func() { a.Route = nil })
				return
			}
		}
	}
	kept := s.row.Routes
	if r.RequestId != nil {
		same := func(k *ReplyRoute) bool { return sameRequest(k.RequestId, r.RequestId) }
		kept = slices.DeleteFunc(slices.Clone(kept), same)
	}
	if len(kept) >= maxRoutes {
		i := slices.IndexFunc(kept, s.unclaimed)
		if i < 0 {
			s.refuse(reasonTooManyRoute)
			return
		}
		kept = slices.Delete(slices.Clone(kept), i, i+1)
	}
	before := s.row.Routes
	s.row.Routes = append(slices.Clone(kept), r)
	s.keepRoute(func() { s.row.Routes = before })
}

// unclaimed reports whether no unfinished message can use an open route. The oldest of these makes room for a new one: its
// message never came, or ended before the route did. If the message comes after all, its output has no route.
func (s *session) unclaimed(r *ReplyRoute) bool {
	for a := range s.unfinished() {
		if sameRequest(a.RequestId, r.RequestId) {
			return false
		}
	}
	return true
}

// keepRoute refuses the route where the row has no room for it. Routes displace only memories.
func (s *session) keepRoute(undo func()) {
	if !s.makeRoomUpTo(memories) {
		undo()
		s.refuse(reasonNoRoom)
		return
	}
	s.changed = true
}

// takeRoute gives a message without request id the oldest open unnamed route that is not newer than itself.
func (s *session) takeRoute(a *Accepted) {
	if a.RequestId != nil {
		return
	}
	for i, r := range s.row.Routes {
		if r.RequestId == nil && s.live(r) != nil && r.TimestampMs <= a.TimestampMs {
			s.row.Routes = slices.Delete(s.row.Routes, i, i+1)
			a.Route = r
			return
		}
	}
}

// useRoute is the descriptor of the route of a message that ends, nil where it has none. Each route is used once.
func (s *session) useRoute(a *Accepted) topics.Raw {
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
	return nil
}

// expectTombstone records that an unnamed route was used: FlightDeck's consumer of message-output will write a tombstone
// for it. With Rules.Delivery that consumer serves no route, because outputs have no token for it. processors/delivery
// does, and its tombstones are known by their turntable.id: every other tombstone withdraws a route.
func (s *session) expectTombstone() {
	if s.rules.Delivery {
		return
	}
	s.row.UsedRoutesMs = append(s.row.UsedRoutesMs, s.nowMS())
	if n := len(s.row.UsedRoutesMs) - maxUsedRoutes; n > 0 {
		s.row.UsedRoutesMs = s.row.UsedRoutesMs[n:]
	}
}

// withdrawRoute applies a foreign tombstone. FlightDeck's consumer writes one for every route it has served, after the
// fact: that one belongs to a used route, and must not take one that was opened since. Used routes are counted in both
// modes: those that were used before Rules.Delivery was switched on may still get their tombstones.
func (s *session) withdrawRoute() {
	used := s.row.UsedRoutesMs
	for len(used) > 0 && used[0] <= s.now.Add(-s.rules.RouteTTL).UnixMilli() {
		used = used[1:]
	}
	if len(used) > 0 {
		s.row.UsedRoutesMs, s.changed = used[1:], true
		return
	}
	var oldest *ReplyRoute
	drop := func() {}
	older := func(r *ReplyRoute) bool {
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
	s.changed = true // also where there was none: a repeat must not take one that comes after
}

// live is the route unless it has expired.
func (s *session) live(r *ReplyRoute) *ReplyRoute {
	if r == nil || r.ExpiresMs <= s.nowMS() {
		return nil
	}
	return r
}

// unfinished are the messages that have no output yet, in the order in which they came.
func (s *session) unfinished() iter.Seq[*Accepted] {
	return func(yield func(*Accepted) bool) {
		if s.row.Turn != nil && !yield(s.row.Turn.Message) {
			return
		}
		for _, a := range s.row.Waiting {
			if !yield(a) {
				return
			}
		}
	}
}

// expireRoutes drops the routes whose time has come.
func (s *session) expireRoutes() {
	n := len(s.row.Routes)
	s.row.Routes = slices.DeleteFunc(s.row.Routes, func(r *ReplyRoute) bool { return s.live(r) == nil })
	s.changed = s.changed || len(s.row.Routes) != n
	for a := range s.unfinished() {
		if a.Route != nil && s.live(a.Route) == nil {
			a.Route, s.changed = nil, true
		}
	}
}

func sameRequest(a, b *string) bool { return a != nil && b != nil && *a == *b }
