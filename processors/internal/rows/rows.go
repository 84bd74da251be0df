// Package rows has what the group tables of all capabilities share: the format of their rows, and the codec that tells the
// runtime the deadlines of rows. A row is one Protobuf message per key, encoded deterministically. It carries a version, so that
// builds that do not support it can reject it, and its earliest deadline in a field of its own.
package rows

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// Timed is the codec of a group table whose rows are made by a Format and may have deadlines. It also encodes rows that are
// already bytes.
type Timed[T any] struct {
	codec.Codec[T]
	// Due is called when the earliest deadline of a row has passed.
	Due func(c *processors.Context) error
}

var (
	_ processors.Timed  = Timed[any]{}
	_ runtimeapi.Frozen = Timed[any]{}
)

// FrozenRows implements runtimeapi.Frozen.
func (Timed[T]) FrozenRows() {}

// Encode implements goka.Codec.
func (r Timed[T]) Encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return r.Codec.Encode(value)
}

// Deadline implements processors.Timed.
func (Timed[T]) Deadline(raw []byte) (ms int64, ok bool) { return Deadline(raw) }

// OnDeadline implements processors.Timed.
func (r Timed[T]) OnDeadline(ctx goka.Context, _ processors.Due) { processors.OnDeadline(ctx, r.Due) }

// Of returns the row in a value of a table, as Processor.Get, a goka.View or a test harness returns it: the zero value for nil,
// which is a key without a row. The error is that of the codec, or wraps codec.ErrType if the value is of another type. owner
// names the table in that error.
func Of[T any](value any, owner string) (none T, err error) {
	switch v := value.(type) {
	case nil:
		return none, nil
	case codec.Decoded[T]:
		return v.Value, v.Err
	default:
		return none, fmt.Errorf("%w: got %T, want a row of %s", codec.ErrType, value, owner)
	}
}
