package group

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// The versions of the row format. A row has the lowest one that an older build must have to work correctly with it. A new
// field is no reason for a new version: older builds preserve unknown fields.
const (
	// rowVersion is the version of rows without gates.
	rowVersion = 1
	// rowGates: a turn waits, or has waited, for decisions. Older builds would expire it, and end it at a second pause.
	rowGates = 2
	// rowStepped: the steps of a turn have writers of their own. Older builds would end the turn with its first step.
	rowStepped = 3
)

// ErrRowVersion is wrapped by errors about a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: fold: row has a newer format", processors.ErrKeepRecord)

var layout = rows.Format{Name: "fold", Version: rowStepped, Newer: ErrRowVersion}

// format returns the lowest row version that can represent the row.
func (r *Row) format() uint32 {
	if slices.ContainsFunc(r.Open, (*Turn).GetStepped) {
		return rowStepped
	}
	if len(r.Early) > 0 {
		return rowGates
	}
	for _, t := range r.Open {
		if t.Asked > 0 || slices.ContainsFunc(t.Held, func(h *Held) bool { return h.Paused }) {
			return rowGates
		}
	}
	return rowVersion
}

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
