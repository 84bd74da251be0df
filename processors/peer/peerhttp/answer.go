package peerhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// answer is an HTTP response.
type answer struct {
	status     int
	body       []byte // JSON; nil for no body
	retryAfter time.Duration
	location   string // of a task that continues
	async      bool   // the preference respond-async was applied
	challenge  string // WWW-Authenticate
	allow      string
}

// The codes of refusals that every door makes. Those of delegation are in package peerwire.
const (
	codeNotFound     peerwire.Code = "not_found"          // 404
	codeMethod       peerwire.Code = "method_not_allowed" // 405
	codeSlowBody     peerwire.Code = "slow_body"          // 408
	codeTarget       peerwire.Code = "target_too_long"    // 414
	codeContentType  peerwire.Code = "content_type"       // 415
	codeRateLimit    peerwire.Code = "rate_limit"         // 429
	codeHeaders      peerwire.Code = "headers_too_large"  // 431
	codeUnauthorized peerwire.Code = "unauthorized"       // 401 of the proxy
	codeForbidden    peerwire.Code = "forbidden"          // 403 of the proxy
	codeUnavailable  peerwire.Code = "unavailable"        // 503: repeat the request
)

// How long clients wait before they repeat a request.
const (
	retrySoon     = time.Second
	retryDisabled = 10 * time.Second
)

// statusClientClosed is the status of a request whose client has disconnected. It is for access logs.
const statusClientClosed = 499

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	if a.body != nil {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds()))))
	}
	if a.async {
		h.Set("Preference-Applied", "respond-async")
	}
	set("Location", a.location)
	set("WWW-Authenticate", a.challenge)
	set("Allow", a.allow)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	// An error means that the client has disconnected.
	_, _ = w.Write(a.body)
}

// refused is the answer to a request that is refused, without a record of it.
func refused(r *peerwire.Refusal) answer {
	a := answer{status: r.Status, body: r.Body()}
	switch r.Status {
	case http.StatusUnauthorized:
		a.challenge = "Bearer"
		if r.Code == peerwire.CodeUnknownToken {
			a.challenge = `Bearer error="invalid_token"`
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		a.retryAfter = retrySoon
		if r.Code == peerwire.CodeDisabled {
			a.retryAfter = retryDisabled
		}
	}
	return a
}

func notFound() answer {
	return refused(&peerwire.Refusal{Status: http.StatusNotFound, Code: codeNotFound, Text: "Not Found"})
}

func methodNotAllowed(allow string) answer {
	a := refused(&peerwire.Refusal{Status: http.StatusMethodNotAllowed, Code: codeMethod, Text: "Method not allowed"})
	a.allow = allow
	return a
}

func unavailable(text string) *peerwire.Refusal {
	return &peerwire.Refusal{Status: http.StatusServiceUnavailable, Code: codeUnavailable, Text: text}
}

// invalid refuses a request because of its header or its parameters.
func invalid(text string) *peerwire.Refusal {
	return &peerwire.Refusal{Status: http.StatusBadRequest, Code: peerwire.CodeInvalidRequest, Text: text}
}

// refusalOf returns what a peer is told about a refusal of the entrance.
func refusalOf(r *entrance.Refusal) *peerwire.Refusal {
	codes := map[int]peerwire.Code{
		http.StatusBadRequest:                  peerwire.CodeInvalidRequest,
		http.StatusUnauthorized:                codeUnauthorized,
		http.StatusForbidden:                   codeForbidden,
		http.StatusRequestTimeout:              codeSlowBody,
		http.StatusRequestURITooLong:           codeTarget,
		http.StatusUnsupportedMediaType:        codeContentType,
		http.StatusTooManyRequests:             codeRateLimit,
		http.StatusRequestHeaderFieldsTooLarge: codeHeaders,
		http.StatusServiceUnavailable:          codeUnavailable,
	}
	switch r.Status {
	case http.StatusRequestEntityTooLarge:
		return peerwire.TooLarge()
	case http.StatusInternalServerError:
		return peerwire.Internal()
	}
	return &peerwire.Refusal{Status: r.Status, Code: codes[r.Status], Text: r.Text}
}

// asWritten keeps what a peer may send: duplicate members, and texts that are not UTF-8.
var asWritten = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true),
)

// indented returns the value with the indentation of all bodies. Its members are unchanged.
func indented(value []byte) []byte {
	v := jsontext.Value(value).Clone()
	if err := v.Indent(asWritten, jsontext.WithIndent("  ")); err != nil {
		return value // not reached: the record was read
	}
	return v
}

// object returns an object with the indentation of all bodies. v is a struct of texts, numbers and booleans.
func object(v any) []byte {
	body, err := json.Marshal(v, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("peer door: write a body: " + err.Error())
	}
	return body
}
