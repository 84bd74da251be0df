package processortest

import (
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/callback"
)

// gokaContext lets a struct embed goka.Context, which has a method of the interface's own name.
type gokaContext = goka.Context

// runtimeContext is what callbacks get: Goka's context, with the driver's clock.
type runtimeContext struct {
	gokaContext
	driver *Driver
}

var _ callback.Runtime = (*runtimeContext)(nil)

func (c *runtimeContext) Now() time.Time { return c.driver.Now() }

// Owns is true: there is one partition.
func (c *runtimeContext) Owns(string) bool { return true }

// Fail never returns, as under the runtime. Goka's does while it shuts down.
func (c *runtimeContext) Fail(err error) {
	c.gokaContext.Fail(err)
	panic(err)
}
