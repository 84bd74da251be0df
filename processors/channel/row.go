package channel

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// rowVersion is the version of the rows that this build writes. Raise it only if an older build could not keep a promise
// with a newer row. An additional field is no reason: unknown fields survive a rewrite.
const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: channel: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "channel", Version: rowVersion, Newer: ErrRowVersion}

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
