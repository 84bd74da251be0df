package tools

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// tool is a function and the limits of its calls.
type tool struct {
	run    Func
	limits []Limit
	calls  responder.OverdueCalls
}

// maxHung is how many calls of a tool that ignore the end of their context may have lost their place for each that may run.
const maxHung = 10

// newTool returns a tool of which so many calls may run at a time.
func (w *Worker) newTool(name string, run Func, concurrency int) *tool {
	return &tool{
		run: run, calls: responder.OverdueCalls{Limit: maxHung * int64(concurrency)},
		limits: append([]Limit{{Name: "tool " + w.rules.Group + " " + name, Concurrency: concurrency}}, w.rules.limits...),
	}
}

// settle runs the tool and returns the record of its result, or an empty record if the call is pending or its turn has
// ended. It returns an error if ctx ended.
func (w *Worker) settle(ctx context.Context, t *tool, c Call) (none processors.Outbound, err error) {
	begun := w.rules.Clock.Now()
	o := outcome{err: errWaited}
	end := w.calls.Call(ctx, c.id, c.Deadline, func(ctx context.Context) error {
		leave, err := worker.Enter(ctx, w.rules.Limiter, c.SessionID, c, t.limits...)
		switch {
		case err == nil:
			begun = w.rules.Clock.Now()
			o = w.call(ctx, t, c, leave)
		case ctx.Err() == nil: // a function of a limit panicked
			o.err = errPanic
		}
		return o.err
	})
	took := w.rules.Clock.Now().Sub(begun)
	switch end {
	case responder.Stopped:
		return none, ctx.Err()
	case responder.Skipped, responder.TurnEnded:
		return none, nil
	case responder.Late:
		if errors.Is(o.err, errWaited) {
			return w.answer(c, failed(errWaited.Error(), reasonTimeout), 0)
		}
		return w.answer(c, failed("the tool did not end before the call's deadline", reasonTimeout), took)
	case responder.Failed:
		return w.answer(c, failed(o.err.Error(), reasonFailed), took)
	}
	if _, pending := o.value.(Pending); pending {
		return none, nil
	}
	res, err := resultOf(o.value)
	if err != nil {
		res = failed("what the tool returned is no JSON", reasonInvalid)
	}
	return w.answer(c, res, took)
}

// errWaited is the error of a call that got no place before its deadline.
var errWaited = errors.New("the call was too old when its tool could begin")

// call runs the tool until it returns or ctx ends. leave gives up its place.
func (w *Worker) call(ctx context.Context, t *tool, c Call, leave func()) outcome {
	o, returned := responder.CallOverdue(ctx, &t.calls, func(ctx context.Context) outcome { return run(ctx, t.run, c) }, leave,
		responder.ReportOverdue(w.rules.Logger, "tool",
			zap.String("agent", w.topics.Agent), zap.String("tool", c.Name), zap.String("tool_use_id", c.ToolUseID)))
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
