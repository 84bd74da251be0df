package entrance

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Answer is the HTTP response of a door.
type Answer struct {
	Status     int
	Body       []byte        // JSON; nil for no body
	RetryAfter time.Duration // zero: no such header
}

// Write writes an answer, with headers given as alternating names and values.
func (a Answer) Write(w http.ResponseWriter, headers ...string) {
	if a.Body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	(&Refusal{RetryAfter: a.RetryAfter}).SetHeader(w.Header())
	w.WriteHeader(a.Status)
	// An error means that the client has disconnected.
	_, _ = w.Write(a.Body)
}

// OK is the answer with a value.
func OK(value any) Answer { return Answer{Status: http.StatusOK, Body: JSON(value)} }

// Failed is the answer about an error.
func Failed(status int, text string) Answer {
	return Answer{Status: status, Body: Object("error", text)}
}

// Internal is the answer about an error that is not the client's.
func Internal() Answer { return Failed(http.StatusInternalServerError, "Internal server error") }

// NotReady is the answer of a door that cannot know yet, and soon will.
func NotReady(text string) Answer { return busy(text).Answer() }

// Answer is the answer to a refused request.
func (r *Refusal) Answer() Answer {
	return Answer{Status: r.Status, Body: Object("error", r.Text), RetryAfter: r.RetryAfter}
}

// Object returns a JSON object with members, given as alternating names and values: see JSON.
func Object(members ...any) []byte {
	b := []byte{'{'}
	for i := 0; i < len(members); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, members[i].(string))
		b = append(append(b, ':'), JSON(members[i+1])...)
	}
	return append(b, '}')
}

// asWritten keeps the values of rows as they were written. Empty lists are [] and not null.
var asWritten = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// JSON returns a value as JSON. topics.Raw and []byte are JSON already. In a text, invalid UTF-8 is replaced.
func JSON(v any) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case topics.Raw:
		return v
	case string:
		b, _ := jsontext.AppendQuote(nil, v)
		return b
	}
	raw, err := json.Marshal(v, asWritten)
	if err != nil {
		return []byte("null")
	}
	return raw
}
