package turn

import (
	"errors"

	"github.com/turntable-streams/turntable/internal/rowformat"
)

// A row's version grows when an older build could not keep a promise with a newer row; a field more is no reason, for
// unknown fields survive.
const (
	// rowVersion is the format of the rows this build begins: since 2 a row may have parts.
	rowVersion = 2
	// rowSteps is the format of a row whose steps have parts. An older build would know none of them, and take a late
	// response for the answer to the open step (R21).
	rowSteps = 3
	// rowTurn is the format of a row whose open turn has results, or a tail with parts. An older build would wait for what
	// has come, and ask the model without it.
	rowTurn = 4
	// rowHeld is the format of a row that holds records for steps to come, or records whose results are read from their
	// values. An older build would never apply them, and ask for answers that have come.
	rowHeld = 5
)

// ErrRowVersion is wrapped by the error about a row that a newer build wrote.
var ErrRowVersion = errors.New("turn: row has a newer format")

var layout = rowformat.Format{Name: "turn", Version: rowHeld, Newer: ErrRowVersion}

// EncodeState writes a row.
func EncodeState(s *State) ([]byte, error) { return layout.Encode(s) }

// DecodeState reads a row. It refuses one of a newer format.
func DecodeState(raw []byte) (*State, error) {
	s := &State{}
	if err := layout.Decode(raw, s); err != nil {
		return nil, err
	}
	return s, nil
}
