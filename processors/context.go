package processors

import (
	"fmt"
	"sync"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// Context is what a Handler gets besides the record: where the record comes from, the table row of its session, and the
// effects it may have. Effects are collected and happen after the handler has returned nil, outputs first, then the
// table row; none happens where it returns an error or panics.
//
// It is meant for the callback's goroutine. After the callback has returned its methods return ErrReturned, Value nil
// and Now the zero time, and touch nothing; the record's coordinates stay readable.
type Context struct {
	record   record
	key      string
	settings *settings

	mu      sync.Mutex
	ctx     goka.Context // nil once the handler has returned
	effects effects
	thrown  any // by Goka, from within a call of the handler's
}

// newContext is the context of a record, which belongs to its own key until it is known to belong to another.
func newContext(ctx goka.Context, s *settings, raw []byte) *Context {
	r := recordOf(ctx, raw)
	return &Context{record: r, key: r.key, settings: s, ctx: ctx}
}

// Key is the session id: the key of the table row. It is the record's key, except where the record was written under
// another one and came through the loop topic.
func (c *Context) Key() string { return c.key }

// Group is the consumer group.
func (c *Context) Group() goka.Group { return c.record.group }

// Topic is the topic the record was written to first: the loop topic is never seen.
func (c *Context) Topic() string { return c.record.topic }

// Partition is the record's partition in Topic.
func (c *Context) Partition() int32 { return c.record.partition }

// Offset is the record's offset in Topic and Partition.
func (c *Context) Offset() int64 { return c.record.offset }

// Timestamp is the record's timestamp, which may be any a foreign producer thought of; the zero time where it has none.
func (c *Context) Timestamp() time.Time { return c.record.timestamp }

// Headers are the record's headers, the last of each name. They must not be changed.
func (c *Context) Headers() goka.Headers { return c.record.headers }

// CauseID names the record as a cause: its turntable.id header, else a hash of topic, partition, offset, timestamp and
// value. It is the same at every replay; ids of what the record brings about are derived from it. For a deadline it is
// of no use: derive ids from the row.
func (c *Context) CauseID() string { return causeID(&c.record) }

// Letter is the record as a dead letter, for a handler that keeps it in the table and may give it up later.
func (c *Context) Letter(reason string) Letter { return c.record.letter(reason) }

// Now is the time on the runtime's clock, or the system's time under a plain goka.NewProcessor.
func (c *Context) Now() (now time.Time) {
	_ = c.locked(func(ctx goka.Context) error {
		now = runtimeapi.Now(ctx)
		return nil
	})
	return now
}

// MaxRecordBytes is the largest record that may be sent: key, value and headers, before compression.
func (c *Context) MaxRecordBytes() (limit int) {
	_ = c.locked(func(goka.Context) error {
		limit = c.settings.recordBytes
		return nil
	})
	return limit
}

// Value is the table row of Key as the table's codec decoded it, or nil where there is none. It is the row as the
// callback found it: SetValue does not change it.
func (c *Context) Value() (row any) {
	_ = c.locked(func(ctx goka.Context) error {
		defer c.keepPanic()
		row = ctx.Value()
		return nil
	})
	return row
}

// Lookup is a row of another group's table as its codec decoded it, or nil where there is none. The table must be an edge
// of the graph (goka.Lookup). It is read by the side and may be late by any time: it is for what may be stale.
func (c *Context) Lookup(table goka.Table, key string) (row any) {
	_ = c.locked(func(ctx goka.Context) error {
		defer c.keepPanic()
		row = ctx.Lookup(table, key)
		return nil
	})
	return row
}

// SetValue writes the table row of Key. A callback writes its row at most once, by SetValue or Delete. value must not
// be changed any more.
func (c *Context) SetValue(value any) error {
	if value == nil {
		return ErrNilRow
	}
	return c.locked(func(goka.Context) error { return c.effects.writeRow(value) })
}

// Delete removes the table row of Key, where there is one.
func (c *Context) Delete() error {
	return c.locked(func(goka.Context) error { return c.effects.writeRow(nil) })
}

// HasParts reports whether the row of Key may stand apart in parts. It may under New and in package processortest, not
// under a plain goka.NewProcessor.
//
// Parts are for big values that change rarely beside small ones that change often: a callback then writes what changed
// and no more. A part is a row of its own in the group's table, in the same partition, under the row's key, a NUL and the
// part's number; visitors and deadlines know nothing of it. What makes a row of its parts is the handler's: the row names
// them, a part that is named is never written again, and a changed value gets a new number. So a crash between the
// records leaves a row with the parts it names, and at worst parts that nobody names.
func (c *Context) HasParts() (has bool) {
	_ = c.locked(func(ctx goka.Context) error {
		_, has = ctx.(runtimeapi.Runtime)
		return nil
	})
	return has
}

// Part is part n of the row of Key as the callback found it, nil where there is none. The caller may keep it, and
// must not change it.
func (c *Context) Part(n uint32) (value []byte, err error) {
	err = c.runtime(func(r runtimeapi.Runtime) error {
		value, err = r.Part(n)
		return err
	})
	return value, err
}

// SetPart writes part n of the row of Key, ahead of the row, which the callback must write too. value must not be nil,
// and must not be changed any more. A part that does not fit into a record is refused with ErrTooLarge.
func (c *Context) SetPart(n uint32, value []byte) error {
	if value == nil {
		return ErrNilRow
	}
	return c.runtime(func(r runtimeapi.Runtime) error {
		if size, limit := recordBytes(c.key, value, nil)+maxPartNumber, c.settings.recordBytes; limit > 0 && size > limit {
			return fmt.Errorf("%w: part %d of a row, %d bytes, limit %d", ErrTooLarge, n, size, limit)
		}
		c.effects.parts = append(c.effects.parts, part{number: n, value: value})
		return nil
	})
}

// maxPartNumber is what a NUL and a part's number add to a key.
const maxPartNumber = 11

// DeletePart removes part n of the row of Key, behind the row, which the callback must write or delete too.
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

// Emit sends a record to an output of the graph; a nil value is a tombstone. value and headers must not be changed any
// more. A stream that is no output of the graph, or a value its codec refuses, stops the processor: where the topic is
// typed, use the function Emit.
func (c *Context) Emit(stream goka.Stream, key string, value any, headers goka.Headers) error {
	return c.locked(func(goka.Context) error {
		c.effects.emit(output{stream: stream, key: key, value: value, headers: withoutPrivate(headers)})
		return nil
	})
}

// EmitWithID is Emit with no header but topics.HeaderID, the id by which readers know a repeat; an empty id is none. It
// costs less than a map of headers with the same.
func (c *Context) EmitWithID(stream goka.Stream, key string, value any, id string) error {
	return c.locked(func(goka.Context) error {
		c.effects.emit(output{stream: stream, key: key, value: value, id: id})
		return nil
	})
}

// DeadLetter sends this record to the group's dead-letter topic, with its original key, bytes and headers, besides the
// handler's other effects. The first reason counts, further calls change nothing. A deadline leaves a null value.
func (c *Context) DeadLetter(reason string) error {
	return c.locked(func(ctx goka.Context) error {
		if !c.effects.rejected {
			c.effects.rejected = true
			c.effects.emit(c.record.letter(reason).output(ctx, c.settings))
		}
		return nil
	})
}

// DeadLetterOther sends a record to the group's dead-letter topic that was held in the table and is now given up.
func (c *Context) DeadLetterOther(l Letter) error {
	return c.locked(func(ctx goka.Context) error {
		c.effects.emit(l.output(ctx, c.settings))
		return nil
	})
}

// Emit encodes a value and sends it to a topic that is an output of the graph. It returns the codec's error, or
// ErrTooLarge for a record over Context.MaxRecordBytes, and then sends nothing. The value is not kept.
func Emit[T any](c *Context, t topics.Topic[T], key string, value T, headers goka.Headers) error {
	encoded, err := encode(c, t, key, value, headersBytes(headers))
	if err != nil {
		return err
	}
	return c.Emit(t.Stream(), key, encoded, headers)
}

// EmitWithID is Emit with no header but topics.HeaderID, as Context.EmitWithID is.
func EmitWithID[T any](c *Context, t topics.Topic[T], key string, value T, id string) error {
	headers := 0
	if id != "" {
		headers = headerBytes(topics.HeaderID, len(id))
	}
	encoded, err := encode(c, t, key, value, headers)
	if err != nil {
		return err
	}
	return c.EmitWithID(t.Stream(), key, encoded, id)
}

// encode makes a value one for the topic's codec, which writes what it could not decode as it came: so the bytes are not
// encoded twice.
func encode[T any](c *Context, t topics.Topic[T], key string, value T, headers int) (codec.Decoded[T], error) {
	raw, err := t.Codec().Marshal(value)
	if err != nil {
		return codec.Decoded[T]{}, fmt.Errorf("processors: encode for %s: %w", t.Name(), err)
	}
	if size, limit := recordOverhead+len(key)+len(raw)+headers, c.MaxRecordBytes(); limit > 0 && size > limit {
		return codec.Decoded[T]{}, fmt.Errorf("%w: %d bytes for %s, limit %d", ErrTooLarge, size, t.Name(), limit)
	}
	return codec.Decoded[T]{Raw: raw, Err: errEncoded}, nil
}

// locked calls f with Goka's context as long as it may be used.
func (c *Context) locked(f func(goka.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return ErrReturned
	}
	return f(c.ctx)
}

// keepPanic remembers a panic of Goka's, which ends the processor and must not be taken for the handler's own.
func (c *Context) keepPanic() {
	if thrown := recover(); thrown != nil {
		c.thrown = thrown
		panic(thrown)
	}
}

// end takes the context away from the handler.
func (c *Context) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = nil
}
