// Package timed is the codec of group tables whose rows have deadlines.
package timed

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// Rows is the codec of a group table whose rows may have deadlines. It also encodes rows that are already bytes.
type Rows[T any] struct {
	codec.Codec[T]
	// Due is called when the earliest deadline of a row has passed.
	Due func(c *processors.Context) error
}

var (
	_ processors.Timed  = Rows[any]{}
	_ runtimeapi.Frozen = Rows[any]{}
)

// Of returns the codec of the table of a group. due is called when the deadline of a row has passed.
func Of[T rows.Message](t rows.Table[T], due func(c *processors.Context) error) Rows[T] {
	return Rows[T]{Codec: t.Codec(), Due: due}
}

// FrozenRows implements runtimeapi.Frozen.
func (Rows[T]) FrozenRows() {}

// Encode implements goka.Codec.
func (r Rows[T]) Encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return r.Codec.Encode(value)
}

// Deadline implements processors.Timed.
func (Rows[T]) Deadline(raw []byte) (ms int64, ok bool) { return rows.Deadline(raw) }

// OnDeadline implements processors.Timed.
func (r Rows[T]) OnDeadline(ctx goka.Context, _ processors.Due) { processors.OnDeadline(ctx, r.Due) }
