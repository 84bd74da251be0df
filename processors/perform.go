package processors

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// ErrKeepRecord is wrapped by an error of a handler that is not the record's fault: this build cannot handle the record,
// but another one can, for example because the table row has a newer version. The record is never dead-lettered. The
// processor restarts, and Run returns ErrGaveUp when the restart limit is reached.
var ErrKeepRecord = runtimeapi.ErrKeepRecord

// errConfidential replaces the error of a handler in the dead letter of a confidential topic's record.
var errConfidential = errors.New("the topic is confidential, the error is in the log")

// perform runs a handler and, if it returned nil, carries out its effects. A handler that fails is called again.
func perform(c *Context, stage Stage, h func(*Context) error) {
	for ctx := c.ctx; !attempt(c, stage, h); {
		c = &Context{record: c.record, key: c.key, settings: c.settings, ctx: ctx}
	}
}

// attempt runs a handler once. It returns false if the handler must be called again.
func attempt(c *Context, stage Stage, h func(*Context) error) (settled bool) {
	ctx := c.ctx
	panicked, err := run(c, h)
	c.end()
	switch {
	case c.thrown != nil: // Goka must stop, even if the handler recovered the panic
		panic(c.thrown)
	case panicked != nil:
		deadLetter(ctx, c, stage, panicked)
	case errors.Is(err, ErrTooLarge): // a retry would fail in the same way
		deadLetter(ctx, c, stage, err)
	case err == nil && len(c.effects.parts) > 0 && !c.effects.written:
		return handlerFailed(ctx, c, stage, ErrPartAlone)
	case err != nil:
		return handlerFailed(ctx, c, stage, err)
	case c.settings.isNarrow():
		if err := c.effects.fit(ctx, c.key, c.settings); err != nil { // a retry would be refused in the same way
			deadLetter(ctx, c, stage, err)
			return true
		}
		c.effects.perform(ctx, c.settings)
	default:
		c.effects.perform(ctx, c.settings)
	}
	return true
}

// handlerFailed decides what follows a handler's error. It returns false if the handler must be called again.
func handlerFailed(ctx goka.Context, c *Context, stage Stage, err error) (settled bool) {
	failure := c.record.fail(stage, err)
	retrier, ok := unbound(ctx).(runtimeapi.Retrier)
	switch {
	case !ok || c.broken: // a restart opens the local store again
		fail(ctx, failure)
	case errors.Is(err, ErrKeepRecord):
		retrier.FailAtRecord(failure)
		return true
	}
	switch verdict, attempts := retrier.HandlerFailed(failure); verdict {
	case runtimeapi.Retry:
		return false
	case runtimeapi.GiveUp:
		if c.record.confidential { // the error may quote the record
			err = errConfidential
		}
		deadLetter(ctx, c, stage, fmt.Errorf("%d attempts failed: %w", attempts, err))
	case runtimeapi.Ended: // the next owner of the partition handles the record
	default:
		fail(ctx, failure)
	}
	return true
}

// hasEnded reports whether a callback must return without effects.
func hasEnded(ctx goka.Context) bool {
	r, ok := unbound(ctx).(runtimeapi.Retrier)
	return ok && r.Ended()
}

// run recovers a handler's panic. Otherwise Goka would stop, and fail on the same record again after every restart.
func run(c *Context, h func(*Context) error) (panicked *PanicError, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			panicked = Recovered(thrown)
		}
	}()
	return nil, h(c)
}

// fail stops the processor and never returns. While Goka shuts down, its own Fail returns, and the record would be
// committed as if it had been handled.
func fail(ctx goka.Context, err error) {
	ctx.Fail(err)
	panic(err)
}

// deadLetter dead-letters a record without its handler's effects: one that reached no handler, or whose handler failed.
func deadLetter(ctx goka.Context, c *Context, stage Stage, cause error) {
	out := c.letterOutput(ctx, c.record.letter(cause.Error()))
	out.rejected = c.record.fail(stage, cause)
	out.perform(ctx, c.settings)
}
