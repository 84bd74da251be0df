package cut

import (
	"errors"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/callback"
	"github.com/turntable-streams/turntable/internal/clock"
)

// gokaContext lets a struct embed goka.Context, which has a method of the interface's own name.
type gokaContext = goka.Context

// callbackContext is what a callback gets instead of Goka's context.
type callbackContext struct {
	gokaContext
	wrap     Wrap
	producer *Producer
	header   goka.ContextOption
}

var _ callback.Runtime = (*callbackContext)(nil)

// Wrap makes the contexts of callbacks.
type Wrap struct {
	Clock clock.Clock
	// Partitions is the number of partitions of the group's inputs.
	Partitions func() int32
	// Rows are the store of the group table's partition, nil where it is not open.
	Rows func(partition int32) Rows
	// Failed keeps the cause of a failure, which Goka flattens to text.
	Failed func(error)
}

// Rows is where the parts of rows are kept, beside the rows.
type Rows interface {
	Get(key string) ([]byte, error)
	Set(key string, value []byte) error
	Delete(key string) error
}

var errNoTable = errors.New("cut: the group has no table that is open")

// Context is called in the partition's goroutine before each callback.
func (w Wrap) Context(ctx goka.Context, p *Producer) goka.Context {
	p.Begin(ctx.Partition())
	return &callbackContext{
		gokaContext: ctx, wrap: w, producer: p,
		header: goka.WithCtxEmitHeaders(goka.Headers{
			callback.HeaderPartition: callback.PartitionHeader(ctx.Partition()),
		}),
	}
}

func (c *callbackContext) Now() time.Time { return c.wrap.Clock.Now() }

func (c *callbackContext) Owns(key string) bool {
	return codec.PartitionOf(key, c.wrap.Partitions()) == c.Partition()
}

func (c *callbackContext) Part(n uint32) ([]byte, error) {
	rows := c.wrap.Rows(c.Partition())
	if rows == nil {
		return nil, errNoTable
	}
	return rows.Get(callback.PartKey(c.Key(), n))
}

func (c *callbackContext) SetPart(n uint32, value []byte) {
	key, rows := callback.PartKey(c.Key(), n), c.wrap.Rows(c.Partition())
	var err error
	switch {
	case rows == nil:
		err = errNoTable
	case value == nil:
		err = rows.Delete(key)
	default:
		err = rows.Set(key, value)
	}
	if err == nil {
		err = c.producer.EmitPart(c.Partition(), key, value)
	}
	if err != nil {
		c.Fail(err)
	}
}

func (c *callbackContext) Emit(topic goka.Stream, key string, value any, options ...goka.ContextOption) {
	c.gokaContext.Emit(topic, key, value, append(options, c.header)...)
}

func (c *callbackContext) Loopback(key string, value any, options ...goka.ContextOption) {
	c.gokaContext.Loopback(key, value, append(options, c.header)...)
}

func (c *callbackContext) SetValue(value any, options ...goka.ContextOption) {
	c.gokaContext.SetValue(value, append(options, c.header)...)
}

func (c *callbackContext) Delete(options ...goka.ContextOption) {
	c.gokaContext.Delete(append(options, c.header)...)
}

// Fail never returns. Goka's does while it shuts down, and the failed record would be marked done.
func (c *callbackContext) Fail(err error) {
	c.wrap.Failed(err)
	c.gokaContext.Fail(err)
	panic(err)
}
