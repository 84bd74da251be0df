package think

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// defaultRetry is the retry policy of a worker without WithRetry, with the defaults of worker.RetryPolicy otherwise.
var defaultRetry = worker.RetryPolicy{Retryable: transient}

// transient reports whether a call may succeed later.
func transient(err error) bool {
	var u *Unavailable
	return errors.As(err, &u)
}

// errCalledAgain is the result of a call of the model that failed and is made again. Its text is that of the model's error.
type errCalledAgain struct{ error }

// Unwrap returns the model's error, which may say how long to wait.
func (e errCalledAgain) Unwrap() error { return e.error }

// calledAgain returns the function that decides whether a step's model is called again after an error: if the policy retries
// the error, this is not the last attempt, and the next one can begin before the step's deadline. All its answers are about
// the time of the first one, so that the model and the worker decide alike.
func (w *Worker) calledAgain(r worker.Record, s Step) func(error) bool {
	policy, now := w.rules.retry, sync.OnceValue(w.rules.Clock.Now)
	return func(err error) bool {
		return !r.Last && policy.Retryable(err) && now().Add(policy.Wait(r.Attempts+1, err)).Before(s.Deadline)
	}
}

// retry handles a record until its step is settled or ctx ends, for callers without a worker runtime.
func (w *Worker) retry(ctx context.Context, in processors.Inbound) error {
	policy := w.rules.retry
	for r := responder.First(in); ; r.Attempts++ {
		r.Last = policy.Last(r.Attempts)
		err := w.handle(ctx, r)
		var again errCalledAgain
		if !errors.As(err, &again) {
			return err
		}
		if !clock.Sleep(ctx, w.rules.Clock, policy.Wait(r.Attempts+1, again)) {
			return ctx.Err()
		}
	}
}

// RetryAfter is After. Package worker waits at least that long before the next attempt.
func (e *Unavailable) RetryAfter() time.Duration { return e.After }
