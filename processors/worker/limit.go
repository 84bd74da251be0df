package worker

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
)

// Limit bounds the calls that have the same key, for example those of a tool, a model or a tenant. C is what the key is
// taken from: a Record, a think.Step or a tools.Call.
type Limit[C any] struct {
	// Name identifies the limit in the Limiter. It must not be empty. Limits of workers that share a Limiter and have the
	// same name count the same calls.
	Name string
	// Key returns what calls are counted by. A call whose key is "" is not limited. If Key is nil, all calls have one key.
	Key func(C) string
	// Concurrency is how many calls of a key may run at a time; 0 means no limit.
	Concurrency int
	// PerMinute is how many calls of a key may begin in a minute, or how many units they may take if there is a Cost; 0 means
	// no limit. It is refilled continuously.
	PerMinute int
	// Burst is how many units of PerMinute an idle key may take immediately (default: a sixth of PerMinute, at least 1).
	Burst int
	// Cost returns how many units of PerMinute a call takes, for example its tokens. Less than 1 counts as 1. A call begins
	// when at least one unit is left; if it takes more than are left, the next call waits for the rest. The default is 1.
	Cost func(C) int
}

// Invalid returns an error if the limit has no name, or if one of its numbers is negative or has no effect.
func (l Limit[C]) Invalid() error {
	switch {
	case l.Name == "":
		return fmt.Errorf("%w: a limit has no name", ErrConfig)
	case l.Concurrency < 0 || l.PerMinute < 0 || l.Burst < 0:
		return fmt.Errorf("%w: limit %s: a number is negative", ErrConfig, l.Name)
	case l.PerMinute == 0 && (l.Burst > 0 || l.Cost != nil):
		return fmt.Errorf("%w: limit %s: Burst and Cost need PerMinute", ErrConfig, l.Name)
	default:
		return nil
	}
}

// defaultBurst is the part of a minute's units that is the default burst.
const defaultBurst = 6

// needsOf returns what a call needs. Key and Cost are the user's and may panic.
func needsOf[C any](call C, limits []Limit[C]) (needs []need, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = processors.Recovered(thrown)
		}
	}()
	for _, l := range limits {
		key := ""
		if l.Key != nil {
			if key = l.Key(call); key == "" {
				continue
			}
		}
		n := need{Bucket: bucketOf(l.Name, key), Concurrency: l.Concurrency}
		if l.PerMinute > 0 {
			burst := l.Burst
			if burst == 0 {
				burst = max(l.PerMinute/defaultBurst, 1)
			}
			n.Rate, n.Burst, n.Cost = float64(l.PerMinute)/60, float64(burst), 1
			if l.Cost != nil {
				n.Cost = float64(max(l.Cost(call), 1))
			}
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// bucketOf returns the name of a key's bucket.
func bucketOf(limit, key string) string { return limit + "\x00" + key }
