package turnhttp

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// answer is an HTTP response.
type answer struct {
	status int
	body   []byte // JSON; nil for no body
}

func (a answer) write(w http.ResponseWriter) {
	if a.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	// An error means that the client has disconnected.
	_, _ = w.Write(a.body)
}

// accepted reports whether the request succeeded.
func (a answer) accepted() bool { return a.status < 300 }

func errorAnswer(status int, text string) answer { return answer{status, object("error", text)} }

func internalError() answer {
	return errorAnswer(http.StatusInternalServerError, "Internal server error")
}

func methodNotAllowed() answer { return errorAnswer(http.StatusMethodNotAllowed, "Method not allowed") }

// object returns a JSON object with string members, given as alternating names and values.
func object(members ...string) []byte {
	b := []byte{'{'}
	for i := 0; i < len(members); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, members[i])
		b = append(b, ':')
		b, _ = jsontext.AppendQuote(b, members[i+1]) // invalid UTF-8 is replaced
	}
	return append(b, '}')
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}
