package group

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/processors"
)

// rowVersion is the version of the row format that this build writes. Raise it only if an older build could not work
// correctly with a newer row. A new field is no reason: older builds preserve unknown fields.
const rowVersion = 1

// ErrRowVersion is wrapped by errors about a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: fold: row has a newer format", processors.ErrKeepRecord)

var layout = rowformat.Format{Name: "fold", Version: rowVersion, Newer: ErrRowVersion}

// EncodeRow encodes a row.
func EncodeRow(s *Row) ([]byte, error) { return layout.Encode(s) }

// DecodeRow decodes a row. It fails with ErrRowVersion for a row with a newer format.
func DecodeRow(raw []byte) (*Row, error) {
	s := &Row{}
	if err := layout.Decode(raw, s); err != nil {
		return nil, err
	}
	return s, nil
}
