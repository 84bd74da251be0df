package cut

import (
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// gokaContext lets a struct embed goka.Context, whose interface has a method named Context.
type gokaContext = goka.Context

// callbackContext replaces Goka's context in callbacks.
//
// It sends outputs and rows to the producer directly. Goka's own path copies the headers of each three times, and needs
// private headers to pass the callback's partition to the producer. Goka counts direct outputs by DeferCommit. Outputs
// that Goka rejects take its own path, so that Goka reports them.
type callbackContext struct {
	gokaContext
	wrap     *Wrap
	producer *Producer
	outputs  outputs
	retrying retrying
	sent     timestamps
}

var (
	_ runtimeapi.Runtime   = (*callbackContext)(nil)
	_ runtimeapi.Retrier   = (*callbackContext)(nil)
	_ runtimeapi.Sequencer = (*callbackContext)(nil)
	_ runtimeapi.Reader    = (*callbackContext)(nil)
	_ runtimeapi.Encoder   = (*callbackContext)(nil)
	_ runtimeapi.Repeater  = (*callbackContext)(nil)
)

// Wrap makes the contexts of callbacks.
type Wrap struct {
	Clock clock.Clock
	// Timer is the virtual topic of deadlines, whose records cause nothing: what a deadline sends is later than its handling.
	Timer string
	// Partitions is the number of partitions of the group's inputs.
	Partitions func() int32
	Edges      Edges
	// Rows returns the store of the group table's partition, or nil if it is not open.
	Rows func(partition int32) Rows
	// Failed records the cause of a failure, which Goka converts to text.
	Failed func(error)
	// Series returns the series of the running generation. Retries may be nil: then failed handlers are not called again.
	Series  func() *Series
	Retries *Retries
	// Progress returns how far the inputs of a partition have been read (Group.Progress). It may be nil in tests.
	Progress func(partition int32, due time.Time) runtimeapi.Progress
	// AnswersFrom is Group.AnswersFrom. It may be nil in tests.
	AnswersFrom func(p Partition, offset int64, answers string) (from int64, repeated bool)
}

// Rows is the store of rows and their parts.
type Rows interface {
	Get(key string) ([]byte, error)
	// Parts returns the numbers of the parts that are stored for a row.
	Parts(key string) ([]uint32, error)
	Set(key string, value []byte) error
	Delete(key string) error
}

var (
	errNoTable         = errors.New("cut: the group has no table that is open")
	errGenerationEnded = errors.New("cut: the generation has ended; its next owner handles the record")
)

// Context returns the context of a callback. It is called in the partition's goroutine before each callback.
func (w *Wrap) Context(ctx goka.Context, p *Producer) goka.Context {
	p.Begin(ctx.Partition(), ctx.Key())
	c := &callbackContext{gokaContext: ctx, wrap: w, producer: p}
	if w.Series != nil { // nil in tests of contexts
		c.retrying.series = w.Series()
		c.retrying.ended = !c.retrying.series.Begun(partitionOf(ctx), ctx.Offset())
	}
	return c
}

// mayHaveEffects fails a callback that is not an edge of package processors and runs after its generation has ended.
func (c *callbackContext) mayHaveEffects() {
	if c.retrying.ended {
		c.Fail(errGenerationEnded)
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
	return rows.Get(runtimeapi.PartKey(c.Key(), n))
}

func (c *callbackContext) Parts() ([]uint32, error) {
	rows := c.wrap.Rows(c.Partition())
	if rows == nil {
		return nil, errNoTable
	}
	return rows.Parts(c.Key())
}

func (c *callbackContext) SetPart(n uint32, value []byte) {
	c.mayHaveEffects()
	key, rows := runtimeapi.PartKey(c.Key(), n), c.wrap.Rows(c.Partition())
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

// Emit implements goka.Context. With options it takes Goka's own path, since only Goka can read them.
func (c *callbackContext) Emit(topic goka.Stream, key string, value any, options ...goka.ContextOption) {
	c.mayHaveEffects()
	if len(options) == 0 {
		c.EmitWithHeaders(topic, key, value, nil)
		return
	}
	c.gokaContext.Emit(topic, key, value, append(options, c.stamp(topic))...)
}

// EmitWithHeaders implements runtimeapi.Runtime.
func (c *callbackContext) EmitWithHeaders(topic goka.Stream, key string, value any, headers goka.Headers) {
	c.mayHaveEffects()
	if raw, ok := c.encode(topic, value); ok {
		c.emit(newEmitted(string(topic), key, raw).with(headers))
		return
	}
	c.gokaContext.Emit(topic, key, value, goka.WithCtxEmitHeaders(headers), c.stamp(topic))
}

// EmitWithID implements runtimeapi.Runtime.
func (c *callbackContext) EmitWithID(topic goka.Stream, key string, value any, id string) {
	c.mayHaveEffects()
	if raw, ok := c.encode(topic, value); ok {
		c.emit(newIdentified(string(topic), key, raw, id))
		return
	}
	c.gokaContext.Emit(topic, key, value, goka.WithCtxEmitHeaders(runtimeapi.IDHeaders(id)), c.stamp(topic))
}

// encode returns an output's bytes; ok is false for a topic that is not an output, which Goka then reports.
func (c *callbackContext) encode(topic goka.Stream, value any) (raw []byte, ok bool) {
	raw, ok, err := c.wrap.Edges.encode(topic, value)
	if err != nil { // Fail never returns; with Goka's own, which may return during shutdown, a tombstone would be sent
		c.Fail(fmt.Errorf("error encoding message for topic %s: %w", topic, err))
	}
	return raw, ok
}

// EncodeOutput implements runtimeapi.Encoder.
func (c *callbackContext) EncodeOutput(topic goka.Stream, value any) ([]byte, error) {
	raw, _, err := c.wrap.Edges.encode(topic, value)
	return raw, err
}

// EncodeRow implements runtimeapi.Encoder.
func (c *callbackContext) EncodeRow(value any) ([]byte, error) {
	if c.wrap.Edges.table == nil {
		return nil, nil
	}
	return c.wrap.Edges.table.Encode(value)
}

func (c *callbackContext) emit(e *emitted) {
	c.outputs.add(c.DeferCommit)
	e.waiter = &c.outputs
	e.msg.Timestamp = c.timestamp(e.msg.Topic)
	c.producer.emitOutput(c.Partition(), e)
}

func (c *callbackContext) Loopback(key string, value any, options ...goka.ContextOption) {
	c.mayHaveEffects()
	c.gokaContext.Loopback(key, value, append(options, c.stamp(loop))...)
}

func (c *callbackContext) SetValue(value any, options ...goka.ContextOption) {
	c.mayHaveEffects()
	rows := c.wrap.Rows(c.Partition())
	if len(options) > 0 || value == nil || rows == nil || c.wrap.Edges.table == nil {
		c.gokaContext.SetValue(value, append(options, c.marker())...)
		return
	}
	raw, err := c.wrap.Edges.table.Encode(value)
	if err != nil {
		c.Fail(fmt.Errorf("error encoding value: %w", err))
	}
	key := c.Key()
	if err := rows.Set(key, raw); err != nil {
		c.Fail(fmt.Errorf("error storing value: %w", err))
	}
	if err := c.producer.EmitRow(c.Partition(), key, raw, nil); err != nil {
		c.DeferCommit()(err)
	}
}

func (c *callbackContext) Delete(options ...goka.ContextOption) {
	c.mayHaveEffects()
	c.gokaContext.Delete(append(options, c.marker())...)
}

// marker makes the option that passes the callback's partition through Goka to the producer.
func (c *callbackContext) marker() goka.ContextOption {
	return goka.WithCtxEmitHeaders(goka.Headers{
		runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(c.Partition()),
	})
}

// stamp is marker for a record that is not of the table: it also passes the record's timestamp.
func (c *callbackContext) stamp(topic goka.Stream) goka.ContextOption {
	return goka.WithCtxEmitHeaders(goka.Headers{
		runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(c.Partition()),
		runtimeapi.HeaderTimestamp: runtimeapi.TimestampHeader(c.timestamp(string(topic))),
	})
}

// loop stands for the group's loop topic, which no output can be.
const loop goka.Stream = "\x00loop"

// timestamp returns the timestamp of the next record that the callback sends to a topic. All records but those of the table
// have one, also dead letters and records of the loop topic: the former are read beside other topics, and the latter cause
// what follows. Rows are read by their offsets.
func (c *callbackContext) timestamp(topic string) time.Time {
	if c.sent.ms != 0 {
		return c.sent.next(topic)
	}
	cause, at := string(c.Topic()), c.Timestamp()
	if cause == c.wrap.Timer {
		at = time.Time{}
	}
	return c.sent.first(topic, c.wrap.Clock.Now(), cause, at)
}

// Sequence implements runtimeapi.Sequencer.
func (c *callbackContext) Sequence() { c.producer.Sequence(c.Partition(), c.Key()) }

// Progress implements runtimeapi.Reader.
func (c *callbackContext) Progress() runtimeapi.Progress {
	if c.wrap.Progress == nil || string(c.Topic()) != c.wrap.Timer {
		return runtimeapi.Progress{}
	}
	return c.wrap.Progress(c.Partition(), time.UnixMilli(c.Offset()))
}

// AnswersFrom implements runtimeapi.Repeater.
func (c *callbackContext) AnswersFrom(topic string) (from int64, repeated bool) {
	if c.wrap.AnswersFrom == nil {
		return 0, false
	}
	return c.wrap.AnswersFrom(partitionOf(c), c.Offset(), topic)
}

// Fail never returns. Goka's own Fail returns during shutdown, and the failed record would be marked done.
func (c *callbackContext) Fail(err error) {
	c.wrap.Failed(err)
	c.gokaContext.Fail(err)
	panic(err)
}
