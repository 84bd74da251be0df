package processors

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/loopback"
)

// Health is a snapshot of a processor's state.
type Health struct {
	State State `json:"state"`
	// Since is when the processor entered the state.
	Since time.Time `json:"since"`
	// Restarts is the number of consecutive failures. It is reset when records are committed, or after a minute
	// without a failure.
	Restarts int `json:"restarts"`
	// Err is the last failure, of the processor or of a handler, or the reason why offsets cannot be committed. A failure is
	// kept after the restart or the next attempt.
	Err error `json:"-"`
	// Lag is the number of records that wait to be handled, by topic and partition, of the inputs' partitions that this
	// instance owns.
	Lag map[string]map[int32]int64 `json:"lag,omitempty"`
}

// Health returns a snapshot of the processor's state.
func (p *Processor) Health() Health {
	h := p.instance.Health()
	out := Health{State: stateOf(h.State), Since: h.Since, Restarts: h.Restarts, Err: h.Err}
	if len(h.Lag) > 0 {
		out.Lag = make(map[string]map[int32]int64)
	}
	for p, n := range h.Lag {
		if out.Lag[p.Topic] == nil {
			out.Lag[p.Topic] = make(map[int32]int64)
		}
		out.Lag[p.Topic][p.ID] = n
	}
	return out
}

// HealthHandler answers GET and HEAD with a processor's health as JSON: state, since, restarts and lag. The status is 200 in
// state Running, otherwise 503. Use it as a readiness probe. A liveness probe must accept 503 too: a processor that is
// recovering or degraded needs no restart from outside.
//
// The answer does not contain Health.Err, which names the key of a record, and so a session, and may contain what a handler
// put into its error. DetailedHealthHandler's does. A request that arrives at a loopback address under a name that is not this
// machine's is answered with 403: the page of any site can give the address such a name.
func HealthHandler(p *Processor) http.Handler { return healthHandler(p, false) }

// DetailedHealthHandler is HealthHandler with the text of Health.Err as the member error. Serve it to operators only, for
// example behind authentication.
func DetailedHealthHandler(p *Processor) http.Handler { return healthHandler(p, true) }

func healthHandler(p *Processor, detailed bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if loopback.Renamed(r) { // a page that has given this machine its name
			http.Error(w, "forbidden: the header Host does not name this machine", http.StatusForbidden)
			return
		}
		h := p.Health()
		body := struct {
			Health
			Error string `json:"error,omitempty"`
		}{Health: h}
		if detailed && h.Err != nil {
			body.Error = h.Err.Error()
		}
		raw, err := json.Marshal(body, json.Deterministic(true))
		if err != nil {
			http.Error(w, "health cannot be encoded", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if h.State != Running {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(raw)
	})
}
