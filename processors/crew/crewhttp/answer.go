package crewhttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// answer is an HTTP response.
type answer struct {
	status     int
	body       []byte // JSON; nil for no body
	retryAfter time.Duration
}

// retryAfter is the Retry-After of a door whose index is not ready.
const retryAfter = time.Second

func write(w http.ResponseWriter, a answer) {
	h := w.Header()
	if a.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((a.retryAfter+time.Second-1)/time.Second))))
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	// An error means that the client has disconnected.
	_, _ = w.Write(a.body)
}

func errorAnswer(status int, text string) answer {
	return answer{status: status, body: object("error", text)}
}

// shown is the answer with a value.
func shown(v any) answer { return answer{status: http.StatusOK, body: valueOf(v)} }

// accepted is the answer to a request whose record is written: what it asks for follows as events.
func accepted(members ...any) answer {
	return answer{status: http.StatusAccepted, body: object(append([]any{"status", "accepted"}, members...)...)}
}

func notReady() answer {
	return answer{http.StatusServiceUnavailable, object("error", "The crews are not known yet"), retryAfter}
}

func badBody(err error) answer { return errorAnswer(http.StatusBadRequest, err.Error()) }

func tooMany(text string, wait time.Duration) answer {
	return answer{http.StatusTooManyRequests, object("error", text), max(wait, time.Second)}
}

func internalError() answer {
	return errorAnswer(http.StatusInternalServerError, "Internal server error")
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}
