package sink

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds a receiver's Retry-After.
const maxRetryAfter = 7 * 24 * time.Hour

// ParseRetryAfter returns the wait in a Retry-After header, which is a number of seconds or an HTTP date. It returns 0 for an
// empty or invalid value and for a date in the past, and at most one week.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // out of range
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
