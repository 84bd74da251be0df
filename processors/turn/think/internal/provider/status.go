package provider

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Failure is an error that an adapter reads in the data of a stream.
type Failure struct{ Response Response }

// Error implements error. The text is not shown.
func (*Failure) Error() string { return "provider: the stream has an error" }

// StatusOverloaded is Anthropic's status of an overloaded API.
const StatusOverloaded = 529

// noQuota is the code of a 429 that does not end by itself: the account has no credit.
const noQuota = "insufficient_quota"

// statuses are the statuses of the words in the codes and types of errors. The first word that matches counts.
var statuses = []struct {
	word   string
	status int
}{
	{noQuota, http.StatusTooManyRequests},
	{"rate_limit", http.StatusTooManyRequests},
	{"ratelimit", http.StatusTooManyRequests},
	{"resource_exhausted", http.StatusTooManyRequests},
	{"too_many_requests", http.StatusTooManyRequests},
	{"throttl", http.StatusTooManyRequests},
	{"overloaded", StatusOverloaded},
	{"unavailable", http.StatusServiceUnavailable},
	{"timeout", http.StatusGatewayTimeout},
	{"deadline_exceeded", http.StatusGatewayTimeout},
	{"authentication", http.StatusUnauthorized},
	{"api_key", http.StatusUnauthorized},
	{"unauth", http.StatusUnauthorized},
	{"permission", http.StatusForbidden},
	{"forbidden", http.StatusForbidden},
	{"balance", http.StatusPaymentRequired},
	{"billing", http.StatusPaymentRequired},
	{"payment", http.StatusPaymentRequired},
	{"not_found", http.StatusNotFound},
	{"notfound", http.StatusNotFound},
	{"too_large", http.StatusRequestEntityTooLarge},
	{"invalid", http.StatusBadRequest},
	{"bad_request", http.StatusBadRequest},
	{"badrequest", http.StatusBadRequest},
	{"context_length", http.StatusBadRequest},
	{"failed_precondition", http.StatusBadRequest},
	{"content_policy", http.StatusBadRequest},
}

// StreamError reads an error in the data of a stream that has begun, whose HTTP status is 200. Its own status is the code,
// also one that is written as text, or else that of its type; 500 if it has none.
func StreamError(e topics.Raw) Response {
	r := Response{Status: http.StatusInternalServerError}
	known := false
	words := ""
	for _, name := range []string{"code", "status", "http_status", "status_code", "type"} {
		text := scalar(Get(e, name))
		if n, err := strconv.Atoi(text); err == nil {
			if n >= 400 && n < 600 && !known {
				r.Status, known = n, true
			}
			continue
		}
		if r.Type == "" {
			r.Type = text
		}
		words += " " + text
	}
	r.Final = strings.Contains(strings.ToLower(words), noQuota)
	if !known {
		r.Status = StatusOf(words)
	}
	r.After = askedWait(e)
	return r
}

// StatusOf returns the status of the codes and types of an error; 500 if none of them is known.
func StatusOf(words string) int {
	words = strings.ToLower(words)
	for _, s := range statuses {
		if strings.Contains(words, s.word) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// askedWait returns how long an error asks to wait; 0 if it does not say.
func askedWait(e topics.Raw) time.Duration {
	metadata := Get(e, "metadata")
	h := http.Header{}
	for _, object := range []topics.Raw{e, metadata, Get(metadata, "headers"), Get(e, "headers")} {
		if jsontext.Value(object).Kind() != '{' {
			continue
		}
		for _, name := range []string{
			"retry_after", "retry_after_seconds", "retryAfter", "Retry-After", "retry-after", "retry-after-ms", "Retry-After-Ms",
		} {
			if text := scalar(Get(object, name)); text != "" {
				key := "Retry-After"
				if strings.HasSuffix(strings.ToLower(name), "-ms") {
					key += "-Ms"
				}
				h.Set(key, text)
			}
		}
	}
	if d := retryAfter(h, time.Now()); d > 0 {
		return d
	}
	details, _ := topics.Elements(Get(e, "details"))
	for _, d := range details { // as Google's APIs say it
		if wait, err := time.ParseDuration(scalar(Get(d, "retryDelay"))); err == nil && wait > 0 {
			return min(wait, maxAfter)
		}
	}
	return 0
}

// scalar returns a string or a number as text, "" for any other value.
func scalar(v topics.Raw) string {
	if k := jsontext.Value(v).Kind(); k != '"' && k != '0' {
		return ""
	}
	return topics.Text(v)
}
