package fold

import (
	"errors"

	"github.com/turntable-streams/turntable/internal/row"
)

// rowVersion is the format of the rows this build writes. It grows when an older build could not keep a promise with a
// newer row; a field more is no reason, for unknown fields survive.
const rowVersion = 1

// ErrRowVersion is wrapped by the error about a row that a newer build wrote.
var ErrRowVersion = errors.New("fold: row has a newer format")

var layout = row.Format{Name: "fold", Version: rowVersion, Newer: ErrRowVersion}

// EncodeRow writes a row.
func EncodeRow(s *Row) ([]byte, error) { return layout.Encode(s) }

// DecodeRow reads a row. It refuses one of a newer format.
func DecodeRow(raw []byte) (*Row, error) {
	s := &Row{}
	if err := layout.Decode(raw, s); err != nil {
		return nil, err
	}
	return s, nil
}
