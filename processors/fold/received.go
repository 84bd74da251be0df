package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func (a eventReceived) apply(s *transition) {
	e := a.Event
	switch {
	case a.Tombstone():
		s.DeadLetter(reasonTombstone)
		return
	case len(e.TurnID) > maxTurnID:
		s.DeadLetter(reasonTurnID)
		return
	case e.Seq == 0: // a user's record without a number
		return
	}
	if e.Step > 0 {
		s.receiveOfStep(e)
		return
	}
	t := s.find(e.TurnID)
	if t != nil && t.Stepped {
		s.DeadLetter(reasonMixed)
		return
	}
	if t == nil {
		if attempt, closed := s.closedAttempt(e.TurnID); closed {
			if e.Attempt > attempt {
				s.DeadLetter(reasonClosed)
			}
			return
		}
		t = s.begin(e.TurnID, e.Attempt)
	}
	if uint64(e.Attempt) < t.Attempt || uint64(e.Attempt) == t.Attempt && s.repeats(t, e) {
		return
	}
	if uint64(e.Attempt) > t.Attempt {
		s.restart(t, e.Attempt)
	}
	s.changed, t.TouchedMs = true, s.nowMS()
	s.keepRequest(t, e.Request)
	switch {
	case s.pausesAt(t, e.Result):
		s.takePause(t, e)
	case e.Result != nil:
		s.end(t, uint64(e.Seq), *e.Result)
	case uint64(e.Seq) == t.Seq+1:
		if s.take(t, e) {
			s.release(t)
		}
	default:
		s.hold(t, e)
	}
}

// repeats reports whether the record was applied or held before.
func (s *transition) repeats(t *foldrow.Turn, e topics.AgentEvent) bool {
	seq := uint64(e.Seq)
	_, held := heldIndex(t, seq)
	if e.Result != nil && !s.pausesAt(t, e.Result) {
		if seq <= t.Seq {
			s.DeadLetter(reasonTaken)
		}
		return seq <= t.Seq
	}
	return seq <= t.Seq || held
}

// eventOf decodes the event of a record. ok is false if there is no event to fold. With invalid the record was
// dead-lettered; its seq counts as applied, so that the turn continues after it.
func (s *transition) eventOf(e topics.AgentEvent) (event folder.Event, ok, invalid bool) {
	switch {
	case e.Author == topics.AuthorUser:
		return folder.Event{}, false, false
	case len(e.Event) > s.config.eventLimit():
		s.DeadLetter(reasonEventSize)
		return folder.Event{}, false, true
	}
	event, err := folder.DecodeEvent([]byte(e.Event))
	if err != nil {
		s.DeadLetter(reasonNotEvent)
		return folder.Event{}, false, true
	}
	return event, true, false
}

// take applies the next record in order. It returns false if that closed the turn.
func (s *transition) take(t *foldrow.Turn, e topics.AgentEvent) bool {
	event, ok, invalid := s.eventOf(e)
	if invalid {
		t.Refused++
	}
	if ok && !s.fold(t, event) {
		return false
	}
	t.Seq++
	return true
}

// fold appends the next event to the turn. It returns false if that closed the turn: either the event is the second done
// event, which names the stop reason, or there is no space for it and it is left out.
func (s *transition) fold(t *foldrow.Turn, e folder.Event) bool {
	if !s.store(t, e) {
		return false
	}
	if e.Type != "done" || t.Stepped {
		t.Paused, t.Stopped = false, false // the run continues
		return true
	}
	if s.config.Gates && pausedDone(e) {
		if waits, open := s.pause(t); waits || !open {
			return open
		}
	}
	t.Paused, t.Stopped = false, false
	// A second done event that names a stop reason closes the turn. One without a reason repeats the first.
	if reason, ok := e.Field("stopReason"); t.Done && ok && string(reason) != "null" {
		t.Seq++
		s.close(t, byEvents)
		return false
	}
	t.Done = true
	return true
}

// store appends an event to those of the turn, or of an attempt at a step of a turn. It returns false if there is no space for it:
// that closes the turn.
func (s *transition) store(t *foldrow.Turn, e folder.Event) bool {
	tail, size := folder.Log(slices.Clone(t.Tail)).Append(e), int(t.PartsSize)
	if owner := s.ownerOf(t); owner != t {
		size += int(owner.PartsSize) + len(owner.Tail)
	}
	if size+len(tail) > s.config.TurnLimit || !s.roomFor(len(tail)-len(t.Tail)) {
		s.close(s.ownerOf(t), tooLarge)
		return false
	}
	if t.Tail = tail; len(tail) > tailLimit {
		s.flushTail(t)
	}
	return true
}

// flushTail moves the tail of a turn to a part.
func (s *transition) flushTail(t *foldrow.Turn) {
	s.write(s.numberOf(t), t.Tail)
	t.PartsSize, t.Tail = t.PartsSize+uint64(len(t.Tail)), nil
}

// end closes the turn with its terminal record; with a gap if records before it are missing.
func (s *transition) end(t *foldrow.Turn, seq uint64, r topics.AgentResult) {
	if seq != t.Seq+1 {
		s.close(t, gap)
		return
	}
	t.Seq = seq
	s.close(t, byResult(r))
}
