// Package retry retries an operation with exponential backoff, for example while the brokers are unavailable. Bound and Jitter
// compute the waits between the attempts of work whose state is a row: they draw no random numbers, so a record that is read
// again gives the same waits.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The first and the longest wait between two tries. The wait doubles each time and is randomized.
const (
	first   = 100 * time.Millisecond
	longest = 5 * time.Second
)

// Until calls do until it returns nil or an error that wraps one of final, or until ctx ends. There is no limit on the
// number of tries. failed, if not nil, is called with every error after which do is retried.
func Until(ctx context.Context, do func() error, failed func(error), final ...error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = first, longest, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		for _, f := range final {
			if errors.Is(err, f) {
				return struct{}{}, backoff.Permanent(err)
			}
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		if failed != nil {
			failed(err)
		}
	}))
	return err
}
