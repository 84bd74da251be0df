package peer

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to stateOf. A row has secrets: the tokens of callbacks.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return encodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return decodeState(raw) }

// stateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of decodeState, or wraps codec.ErrType if the value
// is of another type.
func stateOf(row any) (*State, error) { return rows.Of[*State](row, "package peer") }

// ChainCodec returns the codec of ChainGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*ChainRow]; pass that to chainOf.
func ChainCodec() codec.Codec[*ChainRow] { return codec.Of[*ChainRow](chainFormat{}) }

type chainFormat struct{}

func (chainFormat) Marshal(c *ChainRow) ([]byte, error)     { return layout.Encode(c) }
func (chainFormat) Unmarshal(raw []byte) (*ChainRow, error) { return decodeInto(raw, &ChainRow{}) }

// chainOf returns the head in a value of ChainGraph's table. A nil value is an instance without a row and returns nil. Its
// errors are those of stateOf.
func chainOf(row any) (*ChainRow, error) { return rows.Of[*ChainRow](row, "package peer") }
