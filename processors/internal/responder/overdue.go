package responder

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// OverdueCalls are calls of a function that may ignore the end of its context, and that have one limit in common. It is safe for concurrent use.
type OverdueCalls struct {
	// Grace is how long CallOverdue waits for a function after its context has ended.
	Grace time.Duration
	// Limit is how many functions may be left running. Beyond it, further ones keep their places: a function that always hangs
	// must not start without limit.
	Limit int64

	left atomic.Int64
}

// ignoringEnd is how long a function may continue after the end of its context before its place is given to another call.
const ignoringEnd = time.Second

// CallOverdue calls f in a goroutine until it returns, or until ctx has ended and the grace has passed; then it reports false, and
// f continues. leave gives up the place of the call: it is called when f has returned, or a second after the end of ctx (the
// grace, if that is longer). In the second case report is called too, with the number of functions that are left running, and
// whether the place was given up. f must not panic.
func CallOverdue[T any](
	ctx context.Context, c *OverdueCalls, f func(context.Context) T, leave func(), report func(left int64, freed bool),
) (value T, ok bool) {
	leave = sync.OnceFunc(leave)
	returned := make(chan T, 1)
	go func() {
		defer leave()
		returned <- f(ctx)
	}()
	select {
	case value = <-returned:
		return value, true
	case <-ctx.Done():
	}
	select {
	case value = <-returned: // both were ready: it returned in time
		return value, true
	default:
	}
	if c.Grace > 0 {
		timer := time.NewTimer(c.Grace)
		defer timer.Stop()
		select {
		case value = <-returned:
			return value, true
		case <-timer.C:
		}
	}
	go c.abandon(func(d time.Duration) bool { return within(returned, d) }, leave, report)
	return value, false
}

// ReportOverdue returns a report for CallOverdue that logs calls of what, such as "model".
func ReportOverdue(logger *zap.Logger, what string, fields ...zap.Field) func(left int64, freed bool) {
	return func(left int64, freed bool) {
		fields := append(fields[:len(fields):len(fields)], zap.Int64("hung", left))
		if freed {
			logger.Warn(what+" ignores the end of its context: its place is free for another call", fields...)
		} else {
			logger.Error(what+" ignores the end of its context too often: its calls keep their places", fields...)
		}
	}
}

// within reports whether a value is received before d has passed; without a limit if d is negative.
func within[T any](from <-chan T, d time.Duration) bool {
	if d < 0 {
		<-from
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-from:
		return true
	case <-timer.C:
		return false
	}
}

// abandon waits for a function that CallOverdue no longer waits for.
func (c *OverdueCalls) abandon(returns func(within time.Duration) bool, leave func(), report func(left int64, freed bool)) {
	if returns(max(ignoringEnd-c.Grace, 0)) {
		return
	}
	left := c.left.Add(1)
	defer c.left.Add(-1)
	freed := left <= c.Limit
	report(left, freed) // before another call can take the place
	if freed {
		leave()
	}
	returns(-1)
}
