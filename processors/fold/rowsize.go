package fold

import "slices"

// What a row has besides its parts, at most: a turn with its id, its tail and the names of its parts, a held record,
// and all that is said of the session as a whole.
const (
	turnCost    = 1 << 10
	heldCost    = 25
	sessionCost = 16 << 10
)

// rowLimit is how large the row may become without what stands in parts of it: a row that fits into no record would stop
// the processor, at every attempt.
func (s *session) rowLimit() int {
	limit := max(s.rules.RecordLimit-sessionCost, s.rules.RecordLimit/2)
	if s.parts == nil {
		return min(limit, rowReserve-sessionCost)
	}
	return limit
}

// shrink closes turns as long as the row could outgrow a record with so many bytes more: of those that hold records the
// one with the most, else the quietest.
func (s *session) shrink(more int) {
	for len(s.row.Open) > 0 {
		size := more
		for _, t := range s.row.Open {
			size += turnCost + heldCost*len(t.Held)
		}
		if size <= s.rowLimit() {
			return
		}
		widest := slices.MaxFunc(s.row.Open, func(a, b *Turn) int { return len(a.Held) - len(b.Held) })
		if len(widest.Held) > 0 {
			s.close(widest, gap)
		} else {
			s.close(s.quietest(), tooManyTurns)
		}
	}
}

// quietest is the open turn that was silent for the longest time.
func (s *session) quietest() *Turn {
	return slices.MinFunc(s.row.Open, func(a, b *Turn) int { return int(a.TouchedMs - b.TouchedMs) })
}
