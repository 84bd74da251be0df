package fold

import "time"

// Outcome is what an input brought about.
type Outcome struct {
	// Changed says that the row must be written, or deleted where Row is nil. Where it is false the row stays as it was
	// found.
	Changed bool
	// Row is the row from now on, where Changed is true.
	Row *Row
	// Effects happen before the row is written, but for parts that go: these go after it.
	Effects []Effect
}

// Parts reads a part of the row, nil where it is missing. A nil Parts is a table that takes none: they stand in the row.
type Parts func(number uint32) ([]byte, error)

// Apply is the whole state machine: what an input does to the row of its session. A nil row is a session without one.
// Apply owns the row it is given, which is of no use afterwards; the input is only read. It depends on nothing but its
// arguments, what parts says included: equal ones give equal outcomes. An error is that of parts; nothing happened.
//
// An input that was applied before changes nothing. It has no effects either, but for refused records, whose dead
// letter is written again. A deadline that came too early writes the row as it is, which sets the deadline again.
func Apply(row *Row, in Input, parts Parts, now time.Time, rules Rules) (Outcome, error) {
	s := &session{row: row, key: in.session(), parts: parts, now: now, rules: rules}
	if s.row == nil {
		s.row = &Row{Version: rowVersion}
	}
	in.apply(s)
	switch {
	case s.err != nil:
		return Outcome{}, s.err
	case !s.changed:
		return Outcome{Effects: s.effects}, nil
	case s.erased:
		return Outcome{Changed: row != nil, Effects: s.all()}, nil
	}
	s.row.DeadlineMs = s.deadline()
	return Outcome{Row: s.row, Changed: true, Effects: s.all()}, nil
}

// session is a row while an input is applied to it.
type session struct {
	row     *Row
	key     string
	parts   Parts
	now     time.Time
	rules   Rules
	effects []Effect
	written []PartWritten
	gone    []uint32
	changed bool  // the row must be written
	erased  bool  // the row must go
	err     error // of parts
}

func (s *session) nowMS() int64 { return s.now.UnixMilli() }

// find is the open turn of that id, nil where there is none.
func (s *session) find(id string) *Turn {
	for _, t := range s.row.Open {
		if t.Id == id {
			return t
		}
	}
	return nil
}

// begin opens a turn.
func (s *session) begin(id string, attempt int64) *Turn {
	if len(s.row.Open) >= s.rules.OpenLimit {
		s.close(s.quietest(), tooManyTurns)
	}
	s.shrink(turnCost)
	t := &Turn{Id: id, Attempt: uint64(attempt)}
	s.row.Open = append(s.row.Open, t)
	return t
}

// restart drops what the attempt before has written. What the turn answers stays.
func (s *session) restart(t *Turn, attempt int64) {
	s.dropEvents(t)
	t.Attempt, t.Seq, t.Parts, t.PartsSize, t.Tail = uint64(attempt), 0, nil, 0, nil
	t.Held, t.HeldSize, t.GapMs, t.Done, t.Refused = nil, 0, 0, false, 0
}
