package peer

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of a table with deadlines. It also encodes rows that are already bytes.
type rows[T any] struct {
	codec.Codec[T]
	onDeadline func(c *processors.Context) error
}

var (
	_ processors.Timed  = rows[*State]{}
	_ runtimeapi.Frozen = rows[*State]{}
)

// FrozenRows implements runtimeapi.Frozen.
func (rows[T]) FrozenRows() {}

func (r rows[T]) Encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return r.Codec.Encode(value)
}

func (rows[T]) Deadline(raw []byte) (ms int64, ok bool) { return rowformat.Deadline(raw) }

func (r rows[T]) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. A row has secrets: the tokens of callbacks.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rowOf[*State](row) }

// ChainCodec returns the codec of ChainGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*ChainRow]; pass that to ChainOf.
func ChainCodec() codec.Codec[*ChainRow] { return codec.Of[*ChainRow](chainFormat{}) }

type chainFormat struct{}

func (chainFormat) Marshal(c *ChainRow) ([]byte, error)     { return layout.Encode(c) }
func (chainFormat) Unmarshal(raw []byte) (*ChainRow, error) { return decodeInto(raw, &ChainRow{}) }

// ChainOf returns the head in a value of ChainGraph's table. A nil value is an instance without a row and returns nil. Its
// errors are those of StateOf.
func ChainOf(row any) (*ChainRow, error) { return rowOf[*ChainRow](row) }

func rowOf[T any](row any) (none T, err error) {
	switch v := row.(type) {
	case nil:
		return none, nil
	case codec.Decoded[T]:
		return v.Value, v.Err
	default:
		return none, fmt.Errorf("%w: got %T, want a row of package peer", codec.ErrType, row)
	}
}
