package processortest

import (
	"errors"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// gokaContext lets a struct embed goka.Context, which has a method of the interface's own name.
type gokaContext = goka.Context

// runtimeContext is the context of callbacks: Goka's context with the driver's clock.
type runtimeContext struct {
	gokaContext
	runner *runner
}

var errNoTable = errors.New("processortest: the group has no table")

var (
	_ runtimeapi.Runtime = (*runtimeContext)(nil)
	_ runtimeapi.Reader  = (*runtimeContext)(nil)
)

func (c *runtimeContext) Now() time.Time { return c.runner.driver.Now() }

// Progress says that everything has been read: the harness handles each record when it is written.
func (c *runtimeContext) Progress() runtimeapi.Progress { return runtimeapi.Progress{Through: c.Now()} }

// Owns always returns true, because there is only one partition.
func (c *runtimeContext) Owns(string) bool { return true }

func (c *runtimeContext) EmitWithHeaders(topic goka.Stream, key string, value any, headers goka.Headers) {
	c.Emit(topic, key, value, goka.WithCtxEmitHeaders(headers))
}

func (c *runtimeContext) EmitWithID(topic goka.Stream, key string, value any, id string) {
	c.EmitWithHeaders(topic, key, value, runtimeapi.IDHeaders(id))
}

func (c *runtimeContext) Part(n uint32) ([]byte, error) {
	if c.runner.rows == nil {
		return nil, errNoTable
	}
	return c.runner.rows.Storage.Get(runtimeapi.PartKey(c.Key(), n))
}

func (c *runtimeContext) Parts() ([]uint32, error) {
	if c.runner.rows == nil {
		return nil, errNoTable
	}
	return c.runner.rows.parts(c.Key())
}

// SetPart writes to the table immediately: the harness has no crashes between the writes of a part and its row.
func (c *runtimeContext) SetPart(n uint32, value []byte) {
	err, key := errNoTable, runtimeapi.PartKey(c.Key(), n)
	switch {
	case c.runner.rows == nil:
	case value == nil:
		err = c.runner.rows.Storage.Delete(key)
	default:
		err = c.runner.rows.Storage.Set(key, value)
	}
	if err != nil {
		c.Fail(err)
	}
}

// Fail never returns, as in production. Goka's Fail returns while Goka shuts down.
func (c *runtimeContext) Fail(err error) {
	c.gokaContext.Fail(err)
	panic(err)
}
