package tools

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/overdue"
	"github.com/turntable-streams/turntable/processors/worker"
)

// tool is a function and the limits of its calls.
type tool struct {
	run    Func
	limits []Limit
	calls  overdue.Calls
}

// maxHung is how many calls of a tool that ignore the end of their context may have lost their place for each that may run.
const maxHung = 10

// newTool returns a tool of which so many calls may run at a time.
func (w *Worker) newTool(name string, run Func, concurrency int) *tool {
	return &tool{
		run: run, calls: overdue.Calls{Limit: maxHung * int64(concurrency)},
		limits: append([]Limit{{Name: "tool " + w.rules.group + " " + name, Concurrency: concurrency}}, w.rules.limits...),
	}
}

// settle runs the tool and returns the record of its result, or an empty record if the call is pending or its turn has
// ended. It returns an error if ctx ended.
func (w *Worker) settle(ctx context.Context, t *tool, c Call) (none processors.Outbound, err error) {
	watched, stop := w.ended.Watch(ctx, c.id)
	defer stop()
	if watched.Err() != nil {
		return none, ctx.Err() // nil if the turn has ended: its result has no use
	}
	begun := w.rules.clock.Now()
	inner, cancel := context.WithTimeout(watched, c.Deadline.Sub(begun))
	defer cancel()
	var o outcome
	switch leave, err := worker.Enter(inner, w.rules.limiter, c.SessionID, c, t.limits...); {
	case err == nil:
		begun = w.rules.clock.Now()
		o = w.call(inner, t, c, leave)
	case inner.Err() != nil:
		o.err = errWaited
	default: // a function of a limit panicked
		o.err = errPanic
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

// call runs the tool until it returns or ctx ends. leave gives up its place.
func (w *Worker) call(ctx context.Context, t *tool, c Call, leave func()) outcome {
	o, returned := overdue.Do(ctx, &t.calls, func(ctx context.Context) outcome { return run(ctx, t.run, c) }, leave,
		func(hung int64, freed bool) {
			fields := []zap.Field{
				zap.String("agent", w.topics.Agent), zap.String("tool", c.Name), zap.String("tool_use_id", c.ToolUseID),
				zap.Int64("hung", hung),
			}
			if freed {
				w.rules.logger.Warn("tool ignores the end of its context: its place is free for another call", fields...)
			} else {
				w.rules.logger.Error("tool ignores the end of its context too often: its calls keep their places", fields...)
			}
		})
	if !returned {
		o.err = ctx.Err()
	}
	return o
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
