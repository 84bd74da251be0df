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
