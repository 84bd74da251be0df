package processors

import (
	"errors"

	"github.com/lovoo/goka"
)

// perform runs a handler and then, where it returned nil, its effects.
func perform(c *Context, stage Stage, h func(*Context) error) {
	ctx := c.ctx
	panicked, err := run(c, h)
	c.end()
	switch {
	case c.thrown != nil: // Goka stops; the handler may have recovered it
		panic(c.thrown)
	case panicked != nil:
		deadLetter(ctx, c, stage, panicked)
	case errors.Is(err, ErrTooLarge): // also the next time
		deadLetter(ctx, c, stage, err)
	case err != nil:
		fail(ctx, c.record.fail(stage, err))
	case len(c.effects.parts) > 0 && !c.effects.written:
		fail(ctx, c.record.fail(stage, ErrPartAlone))
	default:
		c.effects.perform(ctx, c.settings)
	}
}

// run keeps a handler's panic from Goka, which would stop and meet the same record again after every restart.
func run(c *Context, h func(*Context) error) (panicked *PanicError, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			panicked = recovered(thrown)
		}
	}()
	return nil, h(c)
}

// fail stops the processor and never returns. While Goka shuts down its Fail does, and the record would be committed as
// if it had been handled.
func fail(ctx goka.Context, err error) {
	ctx.Fail(err)
	panic(err)
}
