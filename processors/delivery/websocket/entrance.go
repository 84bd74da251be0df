package websocket

import (
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// entrance returns the entrance of the server. Its errors are those of the options.
func (r *rules) entrance(agent string) (*entrance.Entrance, error) {
	var check bounds.Check
	e := entrance.New(&check, entrance.Config{
		Door: auth.Door{
			Authenticate: r.authenticate, Origins: r.origins, Concurrency: r.clients, Limits: r.limits,
			Audit: r.audit, Clock: r.clock, Logger: r.logger,
		},
		Name: "websocket", Agent: agent, Sockets: true,
		Defaults: auth.Limits{
			Caller:  auth.Share{Open: 1000, PerSecond: 100, Burst: 1000},
			Session: auth.Share{Open: 100, PerSecond: 20, Burst: 200},
		},
	})
	return e, check.Err(ErrConfig)
}

// busyWait is the Retry-After of a server with too many clients: they stay for long.
const busyWait = 5 * time.Second

func refuse(w http.ResponseWriter, r *entrance.Refusal) {
	if r.Status == http.StatusServiceUnavailable {
		r.RetryAfter = busyWait
	}
	r.SetHeader(w.Header())
	http.Error(w, r.Text, r.Status)
}

// statusRecorder stores the status of a response that the connection is not upgraded with.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController and the upgrade find the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
