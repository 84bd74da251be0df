package delivery

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of Graph's table: TableCodec, with the deadlines of its rows. It also encodes rows that are already
// bytes.
type rows struct {
	codec.Codec[*State]
	onDeadline func(c *processors.Context) error
}

var (
	_ processors.Timed  = rows{}
	_ runtimeapi.Frozen = rows{}
)

// FrozenRows implements runtimeapi.Frozen.
func (rows) FrozenRows() {}

func (r rows) Encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return r.Codec.Encode(value)
}

func (rows) Deadline(raw []byte) (ms int64, ok bool) { return rowformat.Deadline(raw) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. Rows hold bearer tokens; Describe prints a row without them.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rowOf[*State](row) }

// CircuitCodec returns the codec of RoutesGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*Circuit]; pass that to CircuitOf.
func CircuitCodec() codec.Codec[*Circuit] { return codec.Of[*Circuit](circuitFormat{}) }

type circuitFormat struct{}

func (circuitFormat) Marshal(c *Circuit) ([]byte, error)     { return layout.Encode(c) }
func (circuitFormat) Unmarshal(raw []byte) (*Circuit, error) { return decodeInto(raw, &Circuit{}) }

// CircuitOf returns the circuit in a value of RoutesGraph's table. A nil value is a route without a row and returns nil:
// that circuit is closed. Its errors are those of StateOf.
func CircuitOf(row any) (*Circuit, error) { return rowOf[*Circuit](row) }

func rowOf[T any](row any) (none T, err error) {
	switch v := row.(type) {
	case nil:
		return none, nil
	case codec.Decoded[T]:
		return v.Value, v.Err
	default:
		return none, fmt.Errorf("%w: got %T, want a row of package delivery", codec.ErrType, row)
	}
}
