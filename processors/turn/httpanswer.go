package turn

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a request is answered with.
type answer struct {
	status int
	body   []byte // JSON; nil for none
}

func (a answer) write(w http.ResponseWriter) {
	if a.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	// The client may have gone, and nobody else can be told.
	_, _ = w.Write(a.body)
}

// accepted reports whether the request was done, so that it need not be done again.
func (a answer) accepted() bool { return a.status < 300 }

func refusal(status int, text string) answer { return answer{status, object("error", text)} }

func internalError() answer { return refusal(http.StatusInternalServerError, "Internal server error") }

func methodNotAllowed() answer { return refusal(http.StatusMethodNotAllowed, "Method not allowed") }

// object is a JSON object of texts, given as names and values.
func object(members ...string) []byte {
	b := []byte{'{'}
	for i := 0; i < len(members); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, members[i])
		b = append(b, ':')
		b, _ = jsontext.AppendQuote(b, members[i+1]) // what is no UTF-8 is replaced
	}
	return append(b, '}')
}
