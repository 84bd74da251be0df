package channel

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. Rows hold origins, and results that are not announced yet.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rows.Of[*State](row, "package channel") }
