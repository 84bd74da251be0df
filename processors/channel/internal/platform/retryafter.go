package platform

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds a platform's Retry-After.
const maxRetryAfter = 7 * 24 * time.Hour

// RetryAfter returns the wait in a Retry-After header, which is a number of seconds or an HTTP date
// (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after). Fractions of a second, which some platforms send, are rounded up.
// It returns 0 for an empty or invalid value and for a date in the past, and at most one week.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if whole, fraction, _ := strings.Cut(value, "."); whole != "" && digits(whole) && digits(fraction) {
		seconds, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || seconds >= int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // out of range
		}
		if strings.Trim(fraction, "0") != "" {
			seconds++
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// Wait returns a wait that a platform says in units of time, at most one week.
func Wait(n int64, unit time.Duration) time.Duration {
	return time.Duration(min(n, int64(maxRetryAfter/unit))) * unit
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }
