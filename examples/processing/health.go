package main

import (
	"net/http"

	"github.com/turntable-streams/turntable/processors"
)

// openHealth answers GET /healthz: 200 while all groups run, else 503. The body has the state and lag of the turn's group,
// or of the group that does not run, without errors, which may name sessions: those are in the log. It is plain HTTP, for
// probes.
func (p *pipeline) openHealth(shown *stage) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		worst := p.groups[0]
		for _, g := range p.groups {
			if g.Health().State != processors.Running {
				worst = g
				break
			}
		}
		processors.HealthHandler(worst).ServeHTTP(w, r)
	})
	return p.listen(shown, "health", p.health, nil, mux, nil)
}
