package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// apply ends the wait for a gate of an open turn. When it was the last one, the time of Config.Silence begins, in which the
// runner continues. Outcomes of gates that other capabilities opened are ignored.
//
// After a crash under processors.AtLeastOnce, the request of a gate can be written although the row is not. The outcome can
// then arrive before the records that open the gate arrive again. It is held until then.
func (o outcomeReceived) apply(s *transition) {
	if o.Tombstone() {
		s.DeadLetter(reasonTombstone)
		return
	}
	turn, attempt, index, ok := folder.ParseGateCall(o.Outcome.CallID)
	if !ok || len(turn) > maxTurnID || o.Outcome.Shadow || o.Outcome.GateID != topics.GateID(s.key, turn, o.Outcome.CallID) {
		return
	}
	t := s.find(turn)
	if t == nil {
		if _, closed := s.closedAttempt(turn); !closed {
			s.holdEarly(o.Outcome.GateID)
		}
		return
	}
	switch at := slices.Index(t.Gates, uint32(index)); {
	case uint64(attempt) < t.Attempt:
	case uint64(attempt) > t.Attempt || index >= int(t.Asked):
		s.holdEarly(o.Outcome.GateID)
	case at >= 0:
		t.Gates = slices.Delete(t.Gates, at, at+1)
		s.changed, t.TouchedMs = true, s.nowMS()
	}
}

// holdEarly holds the outcome of a gate that was not opened yet. Beyond maxGates, the oldest is dropped.
func (s *transition) holdEarly(gate string) {
	s.forgetEarly()
	if slices.ContainsFunc(s.row.Early, func(e *foldrow.Early) bool { return e.Gate == gate }) {
		return
	}
	s.row.Early = append(s.row.Early, &foldrow.Early{Gate: gate, AtMs: s.nowMS()})
	if over := len(s.row.Early) - maxGates; over > 0 {
		s.row.Early = s.row.Early[over:]
	}
	s.changed, s.row.TouchedMs = true, s.nowMS()
	s.shrink(0)
}

// takeEarly removes the outcome of a gate that is opened; false if none is held.
func (s *transition) takeEarly(gate string) bool {
	s.forgetEarly()
	n := len(s.row.Early)
	s.row.Early = slices.DeleteFunc(s.row.Early, func(e *foldrow.Early) bool { return e.Gate == gate })
	return len(s.row.Early) < n
}

// forgetEarly drops the outcomes that have been held for as long as closed turns are remembered.
func (s *transition) forgetEarly() {
	s.row.Early = slices.DeleteFunc(s.row.Early, func(e *foldrow.Early) bool { return s.forgotten(e.AtMs) })
}
