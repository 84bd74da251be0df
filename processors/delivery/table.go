package delivery

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. Rows hold bearer tokens; Describe prints a row without them.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rows.Of[*State](row, "package delivery") }

// CircuitCodec returns the codec of RoutesGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*Circuit]; pass that to CircuitOf.
func CircuitCodec() codec.Codec[*Circuit] { return codec.Of[*Circuit](circuitFormat{}) }

type circuitFormat struct{}

func (circuitFormat) Marshal(c *Circuit) ([]byte, error)     { return layout.Encode(c) }
func (circuitFormat) Unmarshal(raw []byte) (*Circuit, error) { return decodeInto(raw, &Circuit{}) }

// CircuitOf returns the circuit in a value of RoutesGraph's table. A nil value is a route without a row and returns nil:
// that circuit is closed. Its errors are those of StateOf.
func CircuitOf(row any) (*Circuit, error) { return rows.Of[*Circuit](row, "package delivery") }
