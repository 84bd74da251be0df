package processors

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/unit"
)

// State is what a processor is doing.
type State string

// The states of a processor.
const (
	NotStarted State = "not started" // Run was not called
	Recovering State = "recovering"  // it joins the group or reads its tables
	Running    State = "running"     // records flow
	Degraded   State = "degraded"    // it failed and ends or waits for its restart, or its membership is not confirmed
	Stopped    State = "stopped"     // Run has returned
)

func stateOf(s unit.State) State { return State(s.String()) }

// Health is how a processor is.
type Health struct {
	State State `json:"state"`
	// Since is when the state was entered.
	Since time.Time `json:"since"`
	// Restarts counts the failures in a row; a minute without one forgets them.
	Restarts int `json:"restarts"`
	// Err is the last failure. It stays after a recovery.
	Err error `json:"-"`
	// Lag is how many records of each partition of each input wait to be handled, where this instance owns the
	// partition.
	Lag map[string]map[int32]int64 `json:"lag,omitempty"`
}

func healthOf(h unit.Health) Health {
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

// HealthHandler answers GET with a processor's health as JSON: 200 while it runs, else 503. It suits a readiness probe.
// A liveness probe should accept 503: a processor that is recovering or degraded restarts by itself.
func HealthHandler(p *Processor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		h := p.Health()
		body := struct {
			Health
			Error string `json:"error,omitempty"`
		}{Health: h}
		if h.Err != nil {
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
