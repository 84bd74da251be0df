package fold

import "slices"

func (d DeadlineCame) apply(s *session) {
	for _, t := range slices.Clone(s.row.Open) {
		switch gapAt, graceAt := s.gapEnds(t), s.graceEnds(t); {
		case gapAt != 0 && gapAt <= s.nowMS():
			s.close(t, gap)
		case graceAt != 0 && graceAt <= s.nowMS():
			s.close(t, byEvents)
		case s.silenceEnds(t) <= s.nowMS():
			s.close(t, silence)
		}
	}
	if len(s.row.Open) == 0 && s.restEnds() <= s.nowMS() {
		for _, p := range s.row.Closed {
			s.drop(p.Part)
		}
		s.changed, s.erased = true, true
	}
	// A deadline that fired too early, by rules that were changed or a clock that was set back, fires again only after
	// the row was written.
	s.changed = true
}

// deadline is the earliest open deadline. Every row has one: it goes when all that it remembers is forgotten.
func (s *session) deadline() int64 {
	if len(s.row.Open) == 0 {
		return s.restEnds()
	}
	earliest := s.silenceEnds(s.row.Open[0])
	for _, t := range s.row.Open {
		for _, at := range []int64{s.gapEnds(t), s.graceEnds(t), s.silenceEnds(t)} {
			if at != 0 && at < earliest {
				earliest = at
			}
		}
	}
	return earliest
}

// gapEnds is until when a missing record is waited for, 0 where none is missing.
func (s *session) gapEnds(t *Turn) int64 {
	if len(t.Held) == 0 {
		return 0
	}
	return t.GapMs + s.rules.GapAfter.Milliseconds()
}

// graceEnds is when a done turn closes without its terminal record: 0 where the turn is not done, or where a record is
// known to be missing. That record may be the done event with the stop reason, so such a turn waits for the end of the gap.
func (s *session) graceEnds(t *Turn) int64 {
	if !t.Done || len(t.Held) > 0 {
		return 0
	}
	return t.TouchedMs + s.rules.Grace.Milliseconds()
}

func (s *session) silenceEnds(t *Turn) int64 { return t.TouchedMs + s.rules.Silence.Milliseconds() }

func (s *session) restEnds() int64 { return s.row.TouchedMs + s.rules.RememberFor.Milliseconds() }
