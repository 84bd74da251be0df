package processors

import (
	"errors"

	"github.com/lovoo/goka"
)

// perform runs a handler and, if it returned nil, carries out its effects.
func perform(c *Context, stage Stage, h func(*Context) error) {
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
	case err != nil:
		fail(ctx, c.record.fail(stage, err))
	case len(c.effects.parts) > 0 && !c.effects.written:
		fail(ctx, c.record.fail(stage, ErrPartAlone))
	default:
		c.effects.perform(ctx, c.settings)
	}
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
