package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
)

// Upper bounds of the size of a row without its parts, in bytes: a turn with its id, tail and part numbers; a held record;
// an open gate; an early outcome; the fields of the session.
const (
	turnCost    = 1 << 10
	heldCost    = 27
	gateCost    = 5
	earlyCost   = 64
	sessionCost = 16 << 10
)

// rowLimit returns the maximum size of the row without its parts. A row that does not fit into a record would stop the
// processor at every retry.
func (s *transition) rowLimit() int {
	limit := max(s.config.RecordLimit-sessionCost, s.config.RecordLimit/2)
	if s.parts == nil {
		return min(limit, rowReserve-sessionCost)
	}
	return limit
}

// shrink closes turns until the row and more bytes are within rowLimit. It closes the turn with the most held records
// first; if no turn holds records, the one whose last record is the oldest.
func (s *transition) shrink(more int) {
	for len(s.row.Open) > 0 {
		size := more + earlyCost*len(s.row.Early)
		for _, t := range s.row.Open {
			size += rowSize(t)
		}
		if size <= s.rowLimit() {
			return
		}
		widest := slices.MaxFunc(s.row.Open, func(a, b *foldrow.Turn) int { return len(a.Held) - len(b.Held) })
		if len(widest.Held) > 0 {
			s.close(widest, gap)
		} else {
			s.close(s.leastRecentlyActive(), tooManyTurns)
		}
	}
}

// rowSize returns an upper bound of what a turn takes in the row.
func rowSize(t *foldrow.Turn) int {
	size := turnCost + heldCost*(len(t.Held)+len(t.Queue)) + gateCost*(len(t.Gates)+len(t.Seen))
	for _, run := range t.Runs {
		size += rowSize(run)
	}
	return size
}

// leastRecentlyActive returns the open turn whose last record is the oldest.
func (s *transition) leastRecentlyActive() *foldrow.Turn {
	return slices.MinFunc(s.row.Open, func(a, b *foldrow.Turn) int { return int(a.TouchedMs - b.TouchedMs) })
}
