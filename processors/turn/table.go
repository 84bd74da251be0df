package turn

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// encodedRows is the codec of the group table. Its rows stay encoded until StateOf.
type encodedRows struct{ rows.Timed[*State] }

// Decode returns the row undecoded, because its state may be cached.
func (encodedRows) Decode(raw []byte) (any, error) {
	if raw == nil {
		return nil, nil
	}
	return storedRow(raw), nil
}

// storedRow is a row that StateOf decodes.
type storedRow []byte

// TableCodec returns the codec of the group table, for programs that read it. Its Decode returns a codec.Decoded[*State],
// which StateOf accepts.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of this package's table, as Processor.Get, a goka.View or a test harness returns it.
// A nil row gives a nil state. A value of another type gives an error that wraps codec.ErrType.
func StateOf(row any) (*State, error) {
	if stored, ok := row.(storedRow); ok {
		return DecodeState(stored)
	}
	return rows.Of[*State](row, "a turn's table")
}
