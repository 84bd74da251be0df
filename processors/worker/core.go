package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// core decides what becomes of the records of a source. It is the same for share groups and consumer groups.
type core struct {
	*Worker
	work   context.Context // ends with ErrStopping when the grace period of a stop has passed
	stop   context.Context // ends when the worker stops
	logger *zap.Logger
}

// deliver handles one delivery. It implements source.Handle.
func (c *core) deliver(held context.Context, d source.Delivery) source.Verdict {
	ctx, end := context.WithCancelCause(held)
	defer end(nil)
	defer context.AfterFunc(c.work, func() { end(ErrStopping) })()
	now := c.begin(d)
	defer c.end(now)
	s := &slot{end: func() { end(ErrStopping) }, confirm: d.Confirm, mark: func(waiting bool) {
		c.waiting(now, waiting)
		if d.Wait != nil {
			d.Wait(waiting)
		}
	}}
	if s.confirm == nil {
		s.confirm = func(context.Context) {}
	}
	ctx = context.WithValue(ctx, slotKey{}, s)
	defer context.AfterFunc(c.stop, s.stop)()

	a := attemptOf(d)
	r := Record{Inbound: d.Record, Deliveries: d.Count, Attempts: a.number, Repeated: d.Repeated}
	next, reason := c.config.Retry.first(a), error(nil)
	if next == bury {
		reason = fmt.Errorf("%w: %d deliveries, %d attempts", ErrDeliveries, d.Count, d.Attempts)
	}
	for next == call {
		r.Attempts, r.Last = a.number, c.config.Retry.Last(a.number)
		reason = c.call(ctx, r, now)
		a.number++
		r.Repeated = true
		interrupted := reason != nil && ctx.Err() != nil
		var wait time.Duration
		next, wait = c.config.Retry.after(a, reason, interrupted, rand.Float64())
		if next == settle || next == release {
			break
		}
		c.failed(d, a.number, reason, next, wait)
		if next == call && !c.backOff(ctx, wait) {
			next = release
		}
	}
	if next == bury {
		r.Attempts, r.Last = a.number, true
		next = c.bury(ctx, r, reason)
	}
	if next == settle {
		return source.Settled
	}
	if a.remaining == 0 {
		c.log(zap.ErrorLevel, "record is lost: the worker stopped before its dead letter was written, and the broker does not "+
			"deliver it again", d.Record)
	}
	return source.Released
}

// failed reports a failed call.
func (c *core) failed(d source.Delivery, attempts int, err error, next action, wait time.Duration) {
	if d.Failed != nil {
		d.Failed(attempts)
	}
	c.note(err)
	message := "handler failed, retrying"
	if next == bury {
		message = "handler failed, the record is dead-lettered"
	}
	c.log(zap.WarnLevel, message, d.Record, zap.Int("attempts", attempts), zap.Duration("wait", wait), zap.Error(err))
}

// bury writes the dead letter of a record, with retries until ctx ends.
func (c *core) bury(ctx context.Context, r Record, reason error) action {
	if c.config.Drop {
		c.log(zap.ErrorLevel, "record is dropped: it ended without success", r.Inbound, zap.Error(reason))
		return settle
	}
	for n := 1; ; n++ {
		err := c.write(ctx, r, reason)
		if err == nil {
			return settle
		}
		if ctx.Err() != nil {
			return release
		}
		c.note(err)
		wait := c.config.Retry.wait(n, nil, 0)
		c.log(zap.WarnLevel, "dead letter cannot be written, retrying", r.Inbound, zap.Duration("wait", wait), zap.Error(err))
		if !clock.Sleep(ctx, c.config.Clock, wait) {
			return release
		}
	}
}

func (c *core) write(ctx context.Context, r Record, reason error) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = processors.Recovered(thrown)
		}
	}()
	return c.config.DeadLetter(ctx, r, reason)
}

// errAbandoned is the failure of a handler that ignored the end of its context.
var errAbandoned = errors.New("worker: the handler ignored the end of its context and was abandoned")

// call calls the handler and returns its error. It returns within a second after ctx or the timeout has ended, with or
// without the handler.
func (c *core) call(ctx context.Context, r Record, now *running) error {
	if len(c.config.Limits) > 0 {
		leave, err := Enter(ctx, c.config.Limiter, string(r.Key), r, c.config.Limits...)
		if err != nil {
			return err
		}
		defer leave()
	} else if err := confirmHeld(ctx); err != nil {
		return err
	}
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	if c.config.Timeout > 0 {
		timer := c.config.Clock.NewTicker(c.config.Timeout)
		defer timer.Stop()
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-timer.C():
				end(context.DeadlineExceeded)
			case <-over:
			}
		}()
	}
	returned := make(chan error, 1)
	c.calling(now, r.Attempts+1)
	go func() {
		defer c.returned(now)
		returned <- c.invoke(inner, r)
	}()
	select {
	case err := <-returned:
		return err
	case <-inner.Done():
	}
	limit := time.NewTimer(source.AbandonAfter)
	defer limit.Stop()
	select {
	case err := <-returned:
		return err
	case <-limit.C:
		cause := context.Cause(inner)
		c.abandon(now)
		c.log(zap.ErrorLevel, "handler ignores the end of its context; its slot is free, its result has no effect", r.Inbound,
			zap.NamedError("cause", cause))
		return fmt.Errorf("%w: %w", errAbandoned, cause)
	}
}

func (c *core) invoke(ctx context.Context, r Record) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = processors.Recovered(thrown)
		}
	}()
	return c.handle(ctx, r)
}

// backOff waits, outside of the slot if there are places for records that wait. It returns false as soon as ctx ends.
func (c *core) backOff(ctx context.Context, d time.Duration) bool {
	if c.config.Waiting > 0 {
		defer waitOutsideSlot(ctx)()
	}
	return clock.Sleep(ctx, c.config.Clock, d)
}
