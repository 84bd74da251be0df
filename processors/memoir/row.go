package memoir

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// rowVersion is the version of the rows that this build writes. Raise it only if an older build could not keep a promise
// with a newer row. An additional field is no reason: unknown fields survive a rewrite.
const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: memoir: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "memoir", Version: rowVersion, Newer: ErrRowVersion}

// EncodeState encodes a row.
func EncodeState(s *State) ([]byte, error) { return layout.Encode(s) }

// DecodeState decodes a row. The error wraps ErrRowVersion if the row has a newer version.
func DecodeState(raw []byte) (*State, error) {
	s := &State{}
	if err := layout.Decode(raw, s); err != nil {
		return nil, err
	}
	return s, nil
}

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to StateOf. Rows hold the memories of users.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error)     { return EncodeState(s) }
func (stateFormat) Unmarshal(raw []byte) (*State, error) { return DecodeState(raw) }

// StateOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a user without a row and returns nil. The error is that of DecodeState, or wraps codec.ErrType if the value
// is of another type.
func StateOf(row any) (*State, error) { return rows.Of[*State](row, "package memoir") }
