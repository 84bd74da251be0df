package peer

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// rowVersion is the version of the rows that this build writes. Raise it only if an older build could not keep a promise
// with a newer row. An additional field is no reason: unknown fields survive a rewrite.
const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: peer: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "peer", Version: rowVersion, Newer: ErrRowVersion}

// encodeState encodes a row.
func encodeState(s *State) ([]byte, error) { return layout.Encode(s) }

// decodeState decodes a row. The error wraps ErrRowVersion if the row has a newer version.
func decodeState(raw []byte) (*State, error) { return decodeInto(raw, &State{}) }

func decodeInto[M rows.Message](raw []byte, empty M) (none M, err error) {
	if err := layout.Decode(raw, empty); err != nil {
		return none, err
	}
	return empty, nil
}
