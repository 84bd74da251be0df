package entrance

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Refusal is why a request must not be handled. The door answers with Status and Text, after SetHeader.
type Refusal struct {
	Status     int
	Text       string
	RetryAfter time.Duration // zero: no such header
	// Cause is the error of Authenticate, if that refused the request.
	Cause error
}

// SetHeader sets Retry-After, in whole seconds.
func (r *Refusal) SetHeader(h http.Header) {
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
}

func tooMany(text string, wait time.Duration) *Refusal {
	return &Refusal{Status: http.StatusTooManyRequests, Text: text, RetryAfter: wait}
}

func busy(text string) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Text: text, RetryAfter: time.Second}
}
