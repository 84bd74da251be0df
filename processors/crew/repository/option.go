package repository

import (
	"errors"
	"fmt"
	"time"
)

// ErrOption is wrapped by the error of an option that is out of range.
var ErrOption = errors.New("crew repository: bad option")

// Option sets a rule of Graph, which checks the values.
type Option func(*rules)

// rules are what can be set.
type rules struct {
	ttl time.Duration
}

// WithLockTTL sets how long a lock lasts without a sign of its agent (default 300 seconds, 1 second to 24 hours). Agents give
// one at most once a minute, so a shorter time than some minutes lets the locks of working agents expire.
func WithLockTTL(d time.Duration) Option { return func(r *rules) { r.ttl = d } }

func rulesOf(opts []Option) (rules, error) {
	r := rules{ttl: 300 * time.Second}
	for _, opt := range opts {
		opt(&r)
	}
	if r.ttl < minTTL || r.ttl > maxTTL {
		return r, fmt.Errorf("%w: lock TTL %v is not between %v and %v", ErrOption, r.ttl, minTTL, maxTTL)
	}
	return r, nil
}
