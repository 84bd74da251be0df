package delivery

import (
	"errors"

	"github.com/turntable-streams/turntable/internal/row"
)

// rowVersion is the format of the rows this build writes. It grows when an older build could not keep a promise with a
// newer row; a field more is no reason, for unknown fields survive.
const rowVersion = 1

// ErrRowVersion is wrapped by the error about a row that a newer build wrote.
var ErrRowVersion = errors.New("delivery: row has a newer format")

var layout = row.Format{Name: "delivery", Version: rowVersion, Newer: ErrRowVersion}

// EncodeState writes a row.
func EncodeState(s *State) ([]byte, error) { return layout.Encode(s) }

// DecodeState reads a row. It refuses one of a newer format.
func DecodeState(raw []byte) (*State, error) { return decoded(raw, &State{}) }

func decoded[M row.Message](raw []byte, empty M) (none M, err error) {
	if err := layout.Decode(raw, empty); err != nil {
		return none, err
	}
	return empty, nil
}
