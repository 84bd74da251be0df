package turn

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of the group table. It also delivers the deadlines of the rows, and it accepts encoded rows.
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

// Decode returns the row undecoded, because its state may be cached.
func (rows) Decode(raw []byte) (any, error) {
	if raw == nil {
		return nil, nil
	}
	return storedRow(raw), nil
}

// storedRow is a row that StateOf decodes.
type storedRow []byte

func (rows) Deadline(raw []byte) (ms int64, ok bool) { return rowformat.Deadline(raw) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec returns the codec of the group table, for programs that read it. Its Decode returns a codec.Decoded[*State],
// which StateOf accepts.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of this package's table, as Processor.Get, a goka.View or a test harness returns it.
// A nil row gives a nil state. A value of another type gives an error that wraps codec.ErrType.
func StateOf(row any) (*State, error) {
	switch v := row.(type) {
	case nil:
		return nil, nil
	case codec.Decoded[*State]:
		return v.Value, v.Err
	case storedRow:
		return DecodeState(v)
	default:
		return nil, fmt.Errorf("%w: got %T, want the row of a turn's table", codec.ErrType, row)
	}
}
