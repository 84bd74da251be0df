package tools

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// tool is a function and the semaphore of its running calls: a send acquires, a receive releases.
type tool struct {
	run    Func
	places chan struct{}
	// hung is how many calls have lost their place because they ignored the end of their context.
	hung atomic.Int64
}

func newTool(run Func, concurrency int) *tool {
	return &tool{run: run, places: make(chan struct{}, concurrency)}
}

const (
	// ignoring is how long a tool may continue after the end of its context before its place is given to another call.
	ignoring = time.Second
	// maxHung is how many calls of a tool may have lost their place for each that may run. Beyond it, calls keep their places:
	// a tool that always hangs must not start without limit.
	maxHung = 10
)

// abandon waits for a call whose context has ended. If the tool ignores that, the call is reported and its place is given
// to another call.
func (w *Worker) abandon(t *tool, c Call, outcomes <-chan outcome, leave func()) {
	timer := time.NewTimer(ignoring)
	defer timer.Stop()
	select {
	case <-outcomes:
		return
	case <-timer.C:
	}
	fields := []zap.Field{
		zap.String("agent", w.topics.Agent), zap.String("tool", c.Name), zap.String("tool_use_id", c.ToolUseID),
		zap.Int64("hung", t.hung.Add(1)),
	}
	defer t.hung.Add(-1)
	if t.hung.Load() <= maxHung*int64(cap(t.places)) {
		leave()
		w.rules.logger.Warn("tool ignores the end of its context: its place is free for another call", fields...)
	} else {
		w.rules.logger.Error("tool ignores the end of its context too often: its calls keep their places", fields...)
	}
	<-outcomes
}

// settle runs the tool and returns the record of its result, or an empty record if the call is pending or its turn has
// ended. It returns an error if ctx ended.
func (w *Worker) settle(ctx context.Context, t *tool, c Call) (none processors.Outbound, err error) {
	watched, stop := w.ended.Watch(ctx, c.id)
	defer stop()
	if watched.Err() != nil {
		return none, ctx.Err() // nil if the turn has ended: nobody waits for the result
	}
	begun := w.rules.clock.Now()
	inner, cancel := context.WithTimeout(watched, c.Deadline.Sub(begun))
	defer cancel()
	var o outcome
	if t.enter(inner) {
		begun = w.rules.clock.Now()
		o = w.call(inner, t, c)
	} else {
		o.err = errWaited
	}
	switch _, pending := o.value.(Pending); {
	case watched.Err() != nil && o.err != nil:
		return none, ctx.Err() // the tool's error may only reflect the end of ctx or of its turn
	case errors.Is(o.err, errWaited):
		return w.answer(c, failed(o.err.Error(), reasonTimeout), 0)
	case pending && o.err == nil:
		return none, nil
	}
	return w.answer(c, o.result(inner), w.rules.clock.Now().Sub(begun))
}

// errWaited is the error of a call that got no place before its deadline.
var errWaited = errors.New("the call was too old when its tool could begin")

// enter waits for a place. It reports false, without a place, if ctx ended first.
func (t *tool) enter(ctx context.Context) bool {
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		<-t.places
		return false
	}
	return true
}

// call runs the tool in the place that the caller has entered, until it returns or ctx ends.
func (w *Worker) call(ctx context.Context, t *tool, c Call) (o outcome) {
	leave := sync.OnceFunc(func() { <-t.places })
	outcomes := make(chan outcome, 1)
	go func() {
		defer leave()
		outcomes <- run(ctx, t.run, c)
	}()
	select {
	case o = <-outcomes:
		return o
	case <-ctx.Done():
	}
	select {
	case o = <-outcomes: // both were ready: the tool returned in time
		return o
	default:
		go w.abandon(t, c, outcomes, leave)
		return outcome{err: ctx.Err()}
	}
}

// outcome is what a tool returned.
type outcome struct {
	value any
	err   error
}

// errPanic is the error of a tool that panicked. The panic value is not shown to the model.
var errPanic = errors.New("the tool panicked")

func run(ctx context.Context, f Func, c Call) (o outcome) {
	defer func() {
		if recover() != nil {
			o = outcome{nil, errPanic}
		}
	}()
	value, err := f(ctx, c)
	return outcome{value, err}
}

func (o outcome) result(ctx context.Context) result {
	switch {
	case o.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed("the tool did not end before the call's deadline", reasonTimeout)
	case o.err != nil:
		return failed(o.err.Error(), reasonFailed)
	}
	res, err := resultOf(o.value)
	if err != nil {
		return failed("what the tool returned is no JSON", reasonInvalid)
	}
	return res
}
