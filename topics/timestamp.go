package topics

import "time"

// Timestamp formats a time as the records' timestamps are: ISO-8601 in UTC, with milliseconds, or without a fraction if the
// milliseconds are 0. Smaller units are dropped.
func Timestamp(t time.Time) string {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
