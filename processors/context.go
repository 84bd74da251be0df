package processors

import (
	"fmt"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Context gives a Handler the record's coordinates and the table row of its session, and collects the handler's effects:
// outputs, parts and the row. They are carried out after the handler has returned nil: outputs first, then the table row. If
// the handler returns an error or panics, no effect is carried out.
//
// Use a Context only in the goroutine of its handler. After the handler has returned, methods that return an error return
// ErrReturned and do nothing, Value, Lookup and Now return zero values, and the record's coordinates stay readable.
type Context struct {
	record   record
	key      string
	settings *settings

	mu      sync.Mutex
	ctx     goka.Context // nil once the handler has returned
	effects effects
	thrown  any  // the value of a panic that Goka raised while the handler called it
	broken  bool // the local store returned an error
}

// newContext returns the context of a record. Its key is the record's, until the record turns out to belong to another.
func newContext(ctx goka.Context, s *settings, raw []byte) *Context {
	r := recordOf(ctx, raw)
	return &Context{record: r, key: r.key, settings: s, ctx: ctx}
}

// Key is the session ID: the key of the table row. It differs from the record's key only if the record was written under
// another key and was sent through the loop topic.
func (c *Context) Key() string { return c.key }

// Group is the consumer group.
func (c *Context) Group() goka.Group { return c.record.group }

// Topic is the topic that the record was first written to, never the loop topic.
func (c *Context) Topic() string { return c.record.topic }

// Partition is the record's partition in Topic.
func (c *Context) Partition() int32 { return c.record.partition }

// Offset is the record's offset in Topic and Partition. In the handler of a deadline it is the deadline, in milliseconds since
// the epoch.
func (c *Context) Offset() int64 { return c.record.offset }

// Timestamp is the record's timestamp as its producer or the broker set it, or the zero time if it has none. Foreign
// producers may set any value.
func (c *Context) Timestamp() time.Time { return c.record.timestamp }

// Headers are the record's headers, the last of each name. Do not modify them.
func (c *Context) Headers() goka.Headers { return c.record.headers }

// CauseID identifies the record as a cause: its turntable.id header, or else a hash of topic, partition, offset,
// timestamp and value. It is the same each time the record is redelivered. Derive the IDs of outputs from it, so that
// readers can deduplicate them. Do not use it in the handler of a deadline: derive IDs from the row there.
func (c *Context) CauseID() string { return causeID(&c.record) }

// Letter returns the record as a dead letter. A handler may keep it in the table and pass it to DeadLetterOther later.
func (c *Context) Letter(reason string) Letter { return c.record.letter(reason) }

// Now is the time on the runtime's clock (WithClock), or the system's time under a plain goka.NewProcessor.
func (c *Context) Now() (now time.Time) {
	_ = c.locked(func(ctx goka.Context) error {
		now = runtimeapi.Now(ctx)
		return nil
	})
	return now
}

// Logger is the processor's logger (WithLogger). Under a plain goka.NewProcessor it logs nothing. Do not log values of
// records. The logger stays usable after the handler has returned.
func (c *Context) Logger() *zap.Logger { return c.settings.logger }

// MaxRecordBytes is the size of the largest record that may be sent to all of the given topics, in bytes: key, value and headers
// before compression. Without topics, it is that of all outputs of the group and its table. It is the smaller one of
// WithMaxRecordBytes and the topic's max.message.bytes. The processor reads the latter when it starts; if the brokers do not
// return it, it learns from the records that they refuse.
func (c *Context) MaxRecordBytes(to ...goka.Stream) (limit int) {
	_ = c.locked(func(goka.Context) error {
		limit = c.settings.recordBytes
		for _, topic := range to {
			limit = min(limit, c.settings.limitOf(string(topic)))
		}
		if len(to) == 0 && c.settings.isNarrow() {
			for _, topic := range c.settings.written {
				limit = min(limit, c.settings.limitOf(topic))
			}
		}
		return nil
	})
	return limit
}

// Value is the table row of Key as the table's codec decoded it, or nil if the key has no row. It is the row at the start
// of the callback: SetValue does not change what Value returns.
func (c *Context) Value() (row any) {
	_ = c.locked(func(ctx goka.Context) error {
		defer c.keepPanic()
		row = ctx.Value()
		return nil
	})
	return row
}

// Lookup returns a row of another group's table as its codec decoded it, or nil if the key has no row. The table must be
// an edge of the graph (goka.Lookup). Lookup does not block. The table is updated asynchronously, so the row may be stale
// for any length of time.
func (c *Context) Lookup(table goka.Table, key string) (row any) {
	_ = c.locked(func(ctx goka.Context) error {
		defer c.keepPanic()
		row = ctx.Lookup(table, key)
		return nil
	})
	return row
}

// AnswersFrom reports whether the handler may run for this record for the second time. After a crash under AtLeastOnce, the last
// records are handled again, and their outputs are sent again. answers is an input of the graph. What answered the first outputs is
// in the record's partition of answers, at the returned offset or later. A handler that asks for paid work passes the offset on in
// topics.HeaderAnswersFrom. The worker then looks for the answer before it works again.
//
// repeated is true for every record that was in its partition when the processor read its first record there, because nothing
// tells which of them were handled. It is false for records that arrive later, and under ExactlyOnce.
func (c *Context) AnswersFrom(answers goka.Stream) (offset int64, repeated bool) {
	_ = c.locked(func(ctx goka.Context) error {
		if r, ok := unbound(ctx).(runtimeapi.Repeater); ok {
			offset, repeated = r.AnswersFrom(string(answers))
		}
		return nil
	})
	return offset, repeated
}

// SetValue writes the table row of Key. A callback may write its row once, by SetValue or Delete: the second call returns
// ErrRowWritten. A nil value returns ErrNilRow. Do not modify value afterwards.
func (c *Context) SetValue(value any) error {
	if value == nil {
		return ErrNilRow
	}
	return c.locked(func(goka.Context) error { return c.effects.writeRow(value) })
}

// Delete removes the table row of Key, if there is one. Like SetValue it is a write of the row.
func (c *Context) Delete() error {
	return c.locked(func(goka.Context) error { return c.effects.writeRow(nil) })
}

// HasParts reports whether parts of the row of Key can be stored separately. They can under New and in package
// processortest, not under a plain goka.NewProcessor.
//
// Use parts for large values that change rarely, in a row with small values that change often: a callback then writes only
// what changed. A part is a row of its own in the group's table, in the same partition, under the row's key, a NUL and the
// part's number. Visitors and deadlines do not see parts.
//
// The handler decides which parts make up a row. The row must name them, a part that a row names must not be written
// again, and a changed value must get a new number. Then a crash leaves every row with the parts it names, and at worst
// some parts that no row names.
func (c *Context) HasParts() (has bool) {
	_ = c.locked(func(ctx goka.Context) error {
		_, has = ctx.(runtimeapi.Runtime)
		return nil
	})
	return has
}

// Part returns part n of the row of Key as it was at the start of the callback, or nil if there is none. The caller may
// keep the value but must not modify it. Part returns ErrNoParts if HasParts is false.
func (c *Context) Part(n uint32) (value []byte, err error) {
	err = c.runtime(func(r runtimeapi.Runtime) error {
		value, err = r.Part(n)
		c.broken = c.broken || err != nil
		return err
	})
	return value, err
}

// Parts returns the numbers of all parts that are stored for the row of Key, in no order: also those that the row does not
// name, which a crash can leave. Use it where everything that belongs to a key must be deleted, and rarely: it looks through all
// rows that were written in the last second. Parts returns ErrNoParts if HasParts is false.
func (c *Context) Parts() (numbers []uint32, err error) {
	err = c.runtime(func(r runtimeapi.Runtime) error {
		numbers, err = r.Parts()
		return err
	})
	return numbers, err
}

// SetPart writes part n of the row of Key. The part is written before the row. The callback must write the row too,
// otherwise it fails with ErrPartAlone. Do not modify value after the call. SetPart returns ErrNilRow for a nil value,
// ErrTooLarge for a part that does not fit into a record, and ErrNoParts if HasParts is false.
func (c *Context) SetPart(n uint32, value []byte) error {
	if value == nil {
		return ErrNilRow
	}
	return c.runtime(func(r runtimeapi.Runtime) error {
		if size, limit := recordBytes(c.key, value, nil)+maxPartNumber, c.settings.limitOf(c.settings.table()); limit > 0 && size > limit {
			return fmt.Errorf("%w: part %d of a row, %d bytes, limit %d", ErrTooLarge, n, size, limit)
		}
		c.effects.parts = append(c.effects.parts, part{number: n, value: value})
		return nil
	})
}

// maxPartNumber is the number of bytes that a NUL and a part's number add to a key, at most.
const maxPartNumber = 11

// DeletePart removes part n of the row of Key. The part is removed after the row is written. The callback must write or
// delete the row too, otherwise it fails with ErrPartAlone. DeletePart returns ErrNoParts if HasParts is false.
func (c *Context) DeletePart(n uint32) error {
	return c.runtime(func(runtimeapi.Runtime) error {
		c.effects.parts = append(c.effects.parts, part{number: n})
		return nil
	})
}

func (c *Context) runtime(f func(runtimeapi.Runtime) error) error {
	return c.locked(func(ctx goka.Context) error {
		r, ok := ctx.(runtimeapi.Runtime)
		if !ok {
			return ErrNoParts
		}
		return f(r)
	})
}

// Emit sends a record to an output of the graph after the handler has returned nil. A nil value is a tombstone. Do not
// modify value and headers afterwards. A stream that is not an output of the graph, or a value that its codec cannot
// encode, stops the processor. For a typed topic use the function Emit, which returns such errors to the handler.
func (c *Context) Emit(stream goka.Stream, key string, value any, headers goka.Headers) error {
	return c.locked(func(goka.Context) error {
		c.effects.emit(output{stream: stream, key: key, value: value, headers: withoutPrivate(headers)})
		return nil
	})
}

// EmitWithID is like Emit with the single header topics.HeaderID, by which readers recognize repeats. With an empty ID the
// record has no headers. EmitWithID is cheaper than Emit with a map of headers.
func (c *Context) EmitWithID(stream goka.Stream, key string, value any, id string) error {
	return c.locked(func(goka.Context) error {
		c.effects.emit(output{stream: stream, key: key, value: value, id: id})
		return nil
	})
}

// DeadLetter sends this record to the group's dead-letter topic, with its original key, bytes and headers. The handler's
// other effects are carried out too. Only the first call counts. The reason must not quote the record. In the handler of
// a deadline, the dead letter has the row's key and a null value.
func (c *Context) DeadLetter(reason string) error {
	return c.locked(func(ctx goka.Context) error {
		if !c.effects.rejected {
			c.effects.rejected = true
			c.effects.emit(c.letterOutput(ctx, c.record.letter(reason)))
		}
		return nil
	})
}

// DeadLetterOther sends another record to the group's dead-letter topic: one that the handler kept in the table, as a
// Letter, and gives up now.
func (c *Context) DeadLetterOther(l Letter) error {
	return c.locked(func(ctx goka.Context) error {
		c.effects.emit(c.letterOutput(ctx, l))
		return nil
	})
}

// locked calls f with Goka's context, or returns ErrReturned after the callback has returned.
func (c *Context) locked(f func(goka.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return ErrReturned
	}
	return f(c.ctx)
}

// keepPanic records a panic that Goka raised. It stops the processor and must not be treated as the handler's own panic.
func (c *Context) keepPanic() {
	if thrown := recover(); thrown != nil {
		c.thrown = thrown
		panic(thrown)
	}
}

// end makes the context unusable for the handler.
func (c *Context) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = nil
}

// letterOutput returns a letter as an output of the callback.
func (c *Context) letterOutput(ctx goka.Context, l Letter) output {
	_, ours := ctx.(runtimeapi.Runtime)
	return l.output(c.settings, ours)
}
