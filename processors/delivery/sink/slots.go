package sink

import "sync"

// slots bounds the attempts in flight: all of them, and those of each route. It is safe for concurrent use.
type slots struct {
	total, perRoute int

	mu     sync.Mutex
	used   int
	routes map[string]int // used slots by route; no zeros
}

func newSlots(total, perRoute int) *slots {
	return &slots{total: total, perRoute: perRoute, routes: map[string]int{}}
}

// take takes a slot for a route and reports whether there was one. A route may have as many slots as are free, at least
// one: the more are used, the fewer one route can take, so that a slot is left for a route that has none.
func (s *slots) take(route string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.total - s.used
	if free < 1 || s.routes[route] >= s.perRoute || s.routes[route] > 0 && s.routes[route] >= free {
		return false
	}
	s.used++
	s.routes[route]++
	return true
}

// release returns a slot of a route.
func (s *slots) release(route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.routes[route]--; s.routes[route] == 0 {
		delete(s.routes, route)
	}
}

// inFlight returns how many slots a route has.
func (s *slots) inFlight(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes[route]
}
