// Package retry does again what only has to wait for somebody else: brokers that are away.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The waits between two tries: doubled each time, with a little chance in them.
const (
	first   = 100 * time.Millisecond
	longest = 5 * time.Second
)

// Until tries until do returns nil, or an error that wraps one of final, or ctx ends. failed, if any, is called with each
// error that is not the last.
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
