package fold

import (
	"time"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// parts reads a part of the row. It returns nil for a missing part. Nil parts mean that the table does not support
// parts; they are then stored in the row.
type parts func(number uint32) ([]byte, error)

// apply is the state machine: it applies an input to the row of a session. A nil row is a session without state. apply
// changes row, which must not be used afterwards; it does not change the input. It is deterministic: the outcome depends
// only on the arguments and on the parts that it reads. An error is always an error of parts, and there is no outcome.
//
// An input that was applied before does not change the row and has no effects, except that an invalid record is
// dead-lettered again. A deadline that fires too early writes the row unchanged, which sets the deadline again.
func apply(
	row *foldrow.Row, session string, in input, parts parts, now time.Time, catalog topics.Catalog, config Config,
) (machine.Outcome[*foldrow.Row], error) {
	s := &transition{row: row, key: session, parts: parts, now: now, topics: catalog, config: config}
	if s.row == nil {
		s.row = &foldrow.Row{Version: rowVersion}
	}
	in.apply(s)
	switch {
	case s.err != nil:
		return machine.Outcome[*foldrow.Row]{}, s.err
	case !s.changed:
		return machine.Outcome[*foldrow.Row]{Effects: s.List()}, nil
	case s.erased:
		return machine.Outcome[*foldrow.Row]{Changed: row != nil, Effects: s.allEffects()}, nil
	}
	s.row.Version, s.row.DeadlineMs = formatOf(s.row), s.deadline()
	return machine.Outcome[*foldrow.Row]{Row: s.row, Changed: true, Effects: s.allEffects()}, nil
}

// transition is a row to which an input is being applied.
type transition struct {
	machine.Effects
	row     *foldrow.Row
	key     string
	parts   parts
	now     time.Time
	topics  topics.Catalog
	config  Config
	written []*foldrow.Inline
	deleted []uint32
	changed bool  // the row must be written
	erased  bool  // the row must be deleted
	purges  bool  // the session is purged
	err     error // error of parts
}

func (s *transition) nowMS() int64 { return s.now.UnixMilli() }

// find returns the open turn with that id, nil if there is none.
func (s *transition) find(id string) *foldrow.Turn {
	for _, t := range s.row.Open {
		if t.Id == id {
			return t
		}
	}
	return nil
}

// begin opens a turn.
func (s *transition) begin(id string, attempt int64) *foldrow.Turn {
	if len(s.row.Open) >= s.config.OpenTurns {
		s.close(s.leastRecentlyActive(), tooManyTurns)
	}
	s.shrink(turnCost)
	t := &foldrow.Turn{Id: id, Attempt: uint64(attempt)}
	s.row.Open = append(s.row.Open, t)
	return t
}

// restart drops the events of the older attempt and withdraws its gates. The request that the turn answers is kept.
func (s *transition) restart(t *foldrow.Turn, attempt int64) {
	s.dropEvents(t)
	s.withdrawGates(t)
	t.Asked, t.GatesMs, t.Paused, t.Stopped = 0, 0, false, false
	t.Attempt, t.Seq, t.Parts, t.PartsSize, t.Tail = uint64(attempt), 0, nil, 0, nil
	t.Held, t.HeldSize, t.GapMs, t.Done, t.Refused = nil, 0, 0, false, 0
}
