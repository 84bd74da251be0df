package gatehttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// answer is an HTTP response.
type answer struct {
	status     int
	body       []byte // JSON; nil for no body
	retryAfter time.Duration
}

// retryAfter is the Retry-After of a door whose index is not ready.
const retryAfter = time.Second

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if a.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(a.retryAfter.Seconds())))
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	// An error means that the client has disconnected.
	_, _ = w.Write(a.body)
}

func errorAnswer(status int, text string) answer {
	return answer{status: status, body: object("error", text)}
}

// notFound is the answer about a gate that does not exist, and about one that the caller may not use.
func notFound() answer { return errorAnswer(http.StatusNotFound, "Unknown gate") }

func notReady() answer {
	return answer{http.StatusServiceUnavailable, object("error", "The gates are not known yet"), retryAfter}
}

func internalError() answer {
	return errorAnswer(http.StatusInternalServerError, "Internal server error")
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}

// gateAnswer is the answer to a decision: the decision's ID and the gate, with its outcome if it has one. An empty text means
// no error.
func gateAnswer(status int, text, decision string, v *gate.View) answer {
	b := []byte{'{'}
	if text != "" {
		b = append(appendMember(b, "error", text), ',')
	}
	b = append(appendMember(b, "decision_id", decision), `,"gate":`...)
	return answer{status: status, body: append(append(b, viewJSON(v)...), '}')}
}

// object returns a JSON object with text members, given as alternating names and values.
func object(members ...string) []byte {
	b := []byte{'{'}
	for i := 0; i < len(members); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(b, members[i], members[i+1])
	}
	return append(b, '}')
}

func appendMember(b []byte, name, value string) []byte {
	b, _ = jsontext.AppendQuote(b, name)
	b, _ = jsontext.AppendQuote(append(b, ':'), value) // invalid UTF-8 is replaced
	return b
}

func isoOf(ms int64) string { return topics.Timestamp(time.UnixMilli(ms)) }
