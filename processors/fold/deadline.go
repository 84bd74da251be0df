package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

func (d deadlineReached) apply(s *transition) {
	due := machine.Through(d.read, s.now)
	for _, t := range slices.Clone(s.row.Open) {
		switch gapAt, graceAt := s.gapEnds(t), s.graceEnds(t); {
		case gapAt != 0 && gapAt <= due:
			s.close(t, gap)
		case graceAt != 0 && graceAt <= due:
			s.close(t, byEvents)
		case s.silenceEnds(t) <= due:
			s.close(t, silence)
		}
	}
	if len(s.row.Open) == 0 && s.restEnds() <= due {
		for _, p := range s.row.Closed {
			s.drop(p.Part)
		}
		s.changed, s.erased = true, true
	}
	// A deadline can fire too early if the Config was changed or the clock was set back. It fires again only after the row
	// has been written.
	s.changed = true
}

// deadline returns the earliest deadline. Every row has one: a row without open turns is deleted when its closed turns
// are forgotten.
func (s *transition) deadline() int64 {
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

// gapEnds returns when a turn with a missing record is closed, 0 if none is missing.
func (s *transition) gapEnds(t *foldrow.Turn) int64 {
	if len(t.Held)+len(t.Queue) == 0 {
		return 0
	}
	return t.GapMs + s.config.WindowWait.Milliseconds()
}

// graceEnds returns when a turn with a done event is closed without its terminal record, 0 if there is no done event or a
// record is missing. The missing record may be the done event with the stop reason, so the turn waits for it first.
func (s *transition) graceEnds(t *foldrow.Turn) int64 {
	if !t.Done || len(t.Held) > 0 {
		return 0
	}
	return t.TouchedMs + s.config.Grace.Milliseconds()
}

// silenceEnds returns when a turn without records expires: after the time for which it has announced to be silent, if any. While a gate is open, it expires only if no outcome arrives.
func (s *transition) silenceEnds(t *foldrow.Turn) int64 {
	if len(t.Gates) > 0 {
		return t.GatesMs + s.config.gateWait().Milliseconds()
	}
	return max(t.TouchedMs, t.UntilMs) + s.config.Silence.Milliseconds()
}

func (s *transition) restEnds() int64 { return s.row.TouchedMs + s.config.RememberFor.Milliseconds() }
