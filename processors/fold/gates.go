package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// A run that pauses waits for decisions. Each of its interaction requests without an answer has a gate, which its number in
// the attempt identifies. Turn.Asked is how many requests the turn had at its last pause; of these, the ones in Turn.Gates
// have an open gate, and the others were answered or decided.

// pausesAt reports whether a terminal record is the end of a run that paused, and not the end of its turn. One without a stop
// reason has that of the done event before it.
func (s *transition) pausesAt(t *foldrow.Turn, r *topics.AgentResult) bool {
	switch {
	case !s.config.Gates || r == nil || !r.OK:
		return false
	case r.StopReason != nil:
		return *r.StopReason == "paused"
	default:
		return t.Paused && !t.Stopped
	}
}

func pausedDone(e folder.Event) bool {
	reason, _ := e.Field("stopReason")
	return string(reason) == stopPaused
}

// takePause applies the terminal record of a run that paused. Its usage counts as an event.
func (s *transition) takePause(t *foldrow.Turn, e topics.AgentEvent) {
	if uint64(e.Seq) != t.Seq+1 {
		s.hold(t, e)
		return
	}
	if usage, ok := usageIn(e.Result); ok && !s.fold(t, usage) {
		return
	}
	if t.Seq++; s.pauseByResult(t) {
		s.release(t)
	}
}

func usageIn(r *topics.AgentResult) (e folder.Event, ok bool) {
	if r.Usage == nil {
		return e, false
	}
	e, err := folder.NewEvent("usage", []byte(r.Usage))
	return e, err == nil
}

// pauseByResult pauses a turn at its terminal record. It returns false if that closed the turn, because nothing waits for a
// decision.
func (s *transition) pauseByResult(t *foldrow.Turn) (open bool) {
	waits, open := true, true
	if !t.Paused { // otherwise by the done event before
		waits, open = s.pause(t)
	}
	t.Stopped = waits
	if !waits && open {
		stop := "paused"
		s.close(t, byResult(topics.AgentResult{OK: true, StopReason: &stop}))
		return false
	}
	return open
}

// pause opens the gates of a run that has paused. waits is false if none of its interaction requests lacks an answer, and
// open is false if it closed the turn.
func (s *transition) pause(t *foldrow.Turn) (waits, open bool) {
	logs, whole := s.logs(t)
	f, sound := folderOf(logs)
	if !whole || !sound {
		s.close(t, internalError)
		return false, false
	}
	var added []folder.Interaction
	asked := t.Asked
	for _, a := range f.Interactions() {
		waits = waits || !a.Answered && len(t.Id) <= folder.MaxGateTurn
		if a.Index < int(t.Asked) {
			continue
		}
		if asked = uint32(a.Index) + 1; !a.Answered {
			added = append(added, a)
		}
	}
	if len(t.Gates)+len(added) > maxGates {
		s.close(t, tooLarge)
		return false, false
	}
	if !waits {
		return false, true
	}
	t.Asked, t.Paused, t.Stopped, t.Done = asked, true, false, false
	for _, a := range added {
		s.openGate(t, a)
	}
	s.shrink(0)
	return true, s.find(t.Id) == t
}

// openGate requests a decision. A gate whose outcome was received before is decided at once.
func (s *transition) openGate(t *foldrow.Turn, a folder.Interaction) {
	r := s.gateRequest(t, a)
	machine.Emit(&s.Effects, s.topics.GateRequests, s.key, r.GateID+"/0/gate-request/0", r)
	if !s.takeEarly(r.GateID) {
		t.Gates = append(t.Gates, uint32(a.Index))
		t.GatesMs = s.nowMS()
	}
}

// withdrawGates ends the open gates of a turn that ends or begins again.
func (s *transition) withdrawGates(t *foldrow.Turn) {
	cause := topics.CauseParentEnded
	if s.purges {
		cause = topics.CausePurged
	}
	for _, index := range t.Gates {
		id := topics.GateID(s.key, t.Id, folder.GateCall(t.Id, int64(t.Attempt), int(index)))
		machine.Emit(&s.Effects, s.topics.GateRequests, s.key, id+"/0/gate-withdrawal/0", topics.GateRequest{
			GateID: id, SessionID: s.key, Withdrawn: cause, Origin: topics.GateOrigin{Agent: s.topics.Agent},
		})
	}
	t.Gates = nil
}

// decided returns the interaction requests before the last pause that have an answer or an outcome.
func decided(t *foldrow.Turn, f *folder.Folder) (indexes []int) {
	if t.Asked == 0 {
		return nil
	}
	for _, a := range f.Interactions() {
		if a.Index < int(t.Asked) && !slices.Contains(t.Gates, uint32(a.Index)) {
			indexes = append(indexes, a.Index)
		}
	}
	return indexes
}
