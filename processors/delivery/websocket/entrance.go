package websocket

import (
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

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
