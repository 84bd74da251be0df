package responder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// CalledAgain is the error of a call that failed and is made again. Its text is that of the call's error.
type CalledAgain struct{ error }

// Again returns the CalledAgain of a call's error.
func Again(err error) error { return CalledAgain{err} }

// Unwrap returns the call's error, which may say how long to wait.
func (e CalledAgain) Unwrap() error { return e.error }

// Retried returns the function that decides whether a call is made again after an error: if the policy retries the error, this
// is not the last attempt, and the next one can begin before the deadline. All its answers are about the time of the first
// one, so that all who ask decide alike.
func (s *Settings) Retried(r worker.Record, deadline time.Time) func(error) bool {
	policy, now := s.Retry, sync.OnceValue(s.Clock.Now)
	return func(err error) bool {
		return !r.Last && policy.Retryable(err) && now().Add(policy.Wait(r.Attempts+1, err)).Before(deadline)
	}
}

// RuntimeRetry is the policy of the worker runtime: the handler has decided already which failures are retried.
func (s *Settings) RuntimeRetry() worker.RetryPolicy {
	p := s.Retry
	p.Retryable = nil
	return p
}

// HandleAlone handles a record until it is settled or ctx ends, for callers without a worker runtime. handle returns a
// CalledAgain if the call failed and is to be made again.
func (s *Settings) HandleAlone(
	ctx context.Context, in processors.Inbound, handle func(ctx context.Context, d Delivery) error,
) error {
	for r := First(in); ; r.Attempts++ {
		r.Last = s.Retry.Last(r.Attempts)
		err := handle(ctx, r)
		var again CalledAgain
		if !errors.As(err, &again) {
			return err
		}
		if !clock.Sleep(ctx, s.Clock, s.Retry.Wait(r.Attempts+1, again)) {
			return ctx.Err()
		}
	}
}
