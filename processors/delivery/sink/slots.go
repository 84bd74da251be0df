package sink

import "sync"

// places are the attempts that may be on their way at a time: so many in all, so many a route.
type places struct {
	all, route int

	mu    sync.Mutex
	taken int
	by    map[string]int
}

func newPlaces(all, route int) *places { return &places{all: all, route: route, by: map[string]int{}} }

// take gets a place on a route. The more is taken, the fewer a route may have: a place is left for another one always,
// until there is one place only.
func (p *places) take(route string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.all - p.taken
	if free < 1 || p.by[route] >= p.route || p.by[route] > 0 && p.by[route] >= free {
		return false
	}
	p.taken++
	p.by[route]++
	return true
}

func (p *places) free(route string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[route]--; p.by[route] == 0 {
		delete(p.by, route)
	}
}

// busy is how many attempts a route has on its way.
func (p *places) busy(route string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[route]
}
