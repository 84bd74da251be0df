package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
)

// The versions of the row format. A row has the lowest one that an older build must have to work correctly with it. A new
// field is no reason for a new version: older builds preserve unknown fields.
const (
	// rowVersion is the version of rows without gates.
	rowVersion = 1
	// rowGates: a turn waits, or has waited, for decisions. Older builds would expire it, and end it at a second pause.
	rowGates = 2
	// rowStepped: the steps of a turn have writers of their own. Older builds would end the turn with its first step.
	rowStepped = foldrow.Version
)

// formatOf returns the lowest row version that can represent the row.
func formatOf(r *foldrow.Row) uint32 {
	if slices.ContainsFunc(r.Open, (*foldrow.Turn).GetStepped) {
		return rowStepped
	}
	if len(r.Early) > 0 {
		return rowGates
	}
	for _, t := range r.Open {
		if t.Asked > 0 || slices.ContainsFunc(t.Held, func(h *foldrow.Held) bool { return h.Paused }) {
			return rowGates
		}
	}
	return rowVersion
}
