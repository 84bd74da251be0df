// Package turnrow is the row format of the table of turns.
package turnrow

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// Version is the version of the row format that this build writes. Raise it only if an older build could not work correctly
// with a newer row. A new field is no reason: older builds preserve unknown fields.
const Version = 1

// ErrVersion is wrapped by errors about a row that a newer build wrote.
var ErrVersion = fmt.Errorf("%w: invoke: row has a newer format", processors.ErrKeepRecord)

var layout = rows.Format{Name: "invoke", Version: Version, Newer: ErrVersion}

// Format is the codec's format of rows.
type Format struct{}

// Marshal encodes a row.
func (Format) Marshal(r *Row) ([]byte, error) { return layout.Encode(r) }

// Unmarshal decodes a row. It fails with ErrVersion for a row with a newer format.
func (Format) Unmarshal(raw []byte) (*Row, error) {
	r := &Row{}
	if err := layout.Decode(raw, r); err != nil {
		return nil, err
	}
	return r, nil
}
