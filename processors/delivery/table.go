package delivery

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/callback"
	"github.com/turntable-streams/turntable/internal/row"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of the group table: that of states, with their deadlines. It takes bytes that are a row as well.
type rows struct {
	codec.Codec[*State]
	onDeadline func(c *processors.Context) error
}

var (
	_ processors.Timed = rows{}
	_ callback.Frozen  = rows{}
)

// FrozenRows implements callback.Frozen.
func (rows) FrozenRows() {}

func (r rows) Encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return r.Codec.Encode(value)
}

func (rows) Deadline(raw []byte) (ms int64, ok bool) { return row.Deadline(raw) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec is the codec of the group table, for whoever looks into it. Decode yields a codec.Decoded[*State], which
// StateOf takes. Rows hold bearer tokens: Describe leaves them out.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf is the state in what a table of this package yields: Processor.Get, a goka.View, a harness. Nil is no row.
func StateOf(row any) (*State, error) { return rowOf[*State](row) }

// CircuitCodec is the codec of the routes' table, for whoever looks into it. Decode yields a codec.Decoded[*Circuit],
// which CircuitOf takes.
func CircuitCodec() codec.Codec[*Circuit] { return codec.Of[*Circuit](circuitFormat{}) }

type circuitFormat struct{}

func (circuitFormat) Marshal(c *Circuit) ([]byte, error)     { return layout.Encode(c) }
func (circuitFormat) Unmarshal(raw []byte) (*Circuit, error) { return decoded(raw, &Circuit{}) }

// CircuitOf is the state of a route in what the routes' table yields. Nil is a route of which nothing is known: its
// circuit is closed.
func CircuitOf(row any) (*Circuit, error) { return rowOf[*Circuit](row) }

func rowOf[T any](row any) (none T, err error) {
	switch v := row.(type) {
	case nil:
		return none, nil
	case codec.Decoded[T]:
		return v.Value, v.Err
	default:
		return none, fmt.Errorf("%w: got %T, want a row of this package", codec.ErrType, row)
	}
}
