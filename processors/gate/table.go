package gate

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. Gates returns what a row contains.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rows.Of[*State](row, "package gate") }

// GrantCodec returns the codec of GrantsGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*Grants]; pass that to GrantsOf.
func GrantCodec() codec.Codec[*Grants] { return codec.Of[*Grants](grantFormat{}) }

type grantFormat struct{}

func (grantFormat) Marshal(g *Grants) ([]byte, error)     { return layout.Encode(g) }
func (grantFormat) Unmarshal(raw []byte) (*Grants, error) { return decodeInto(raw, &Grants{}) }

// GrantsOf returns the grants in a value of GrantsGraph's table. A nil value is an agent without a row and returns nil. Its
// errors are those of StateOf.
func GrantsOf(row any) (*Grants, error) { return rows.Of[*Grants](row, "package gate") }
