package turn

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of the group table. It decodes to codec.Decoded[*State] and encodes a State, or bytes that are one.
type rows struct {
	onDeadline func(c *processors.Context) error
}

var _ processors.Timed = rows{}

func (rows) Encode(value any) ([]byte, error) {
	switch v := value.(type) {
	case []byte:
		return v, nil
	case *State:
		return EncodeState(v)
	default:
		return nil, fmt.Errorf("%w: got %T, want %T", codec.ErrType, value, &State{})
	}
}

func (rows) Decode(raw []byte) (any, error) {
	s, err := DecodeState(raw)
	return codec.Decoded[*State]{Value: s, Raw: raw, Err: err}, nil
}

func (rows) Deadline(row []byte) (ms int64, ok bool) { return deadlineOf(row) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// StateOf is the state in what a table of this package yields: Processor.Get, a goka.View, a harness. Nil is no row.
func StateOf(row any) (*State, error) {
	switch v := row.(type) {
	case nil:
		return nil, nil
	case codec.Decoded[*State]:
		return v.Value, v.Err
	default:
		return nil, fmt.Errorf("%w: got %T, want the row of a turn's table", codec.ErrType, row)
	}
}

// TableCodec is the codec of the group table, for a goka.View. What it decodes to is for StateOf.
func TableCodec() goka.Codec { return rows{} }
