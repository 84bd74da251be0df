package think

import (
	"errors"
	"time"
)

// transient reports whether a call may succeed later.
func transient(err error) bool {
	var u *Unavailable
	return errors.As(err, &u)
}

// RetryAfter is After. Package worker waits at least that long before the next attempt.
func (e *Unavailable) RetryAfter() time.Duration { return e.After }
