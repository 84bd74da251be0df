package turn

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Gates the turn reads the gates of other requesters, such as package fold, whose agent asks a person in the
// middle of a think step. While such a gate is open, the clock of the think step of the turn that it names is stopped.
//
// A gate names a turn by its turn_id, which is the turn's ID or the request_id of its message, or by a call_id that begins
// with the turn's ID. The topics have no common order, so a gate can be read before its turn opens: it is kept until its
// outcome, or until gateGrace after its deadline. The turn withdraws the gates that name it when it ends.
//
// With Config.Memoir a gate that names no turn, or one that has ended, is kept too: a session with an open gate does not end.

// maxOtherGates is how many gates of other requesters a session has at most. More do not stop the clock.
const maxOtherGates = 256

func (s *transition) receiveGate(e gateOpened) {
	g := e.Request
	if e.tombstone() || g.Withdrawn != "" || g.Shadow || !s.rules.Gates { // a withdrawn gate has an outcome
		return
	}
	named := turnNamed(g)
	if len(named) > maxID {
		named = ""
	}
	switch {
	case len(g.GateID) > maxID || s.knowsCall(digests.Of(ofGate, g.GateID)) || s.hasOtherGate(g.GateID):
		return
	case named == "" && (s.rules.Memoir == nil || s.isNew): // it names no turn, and there is no session that must not end
		return
	case named != "" && s.rules.Memoir == nil && s.endedTurn(named):
		return
	case len(s.row.OtherGates) >= maxOtherGates:
		s.deadLetter(reasonManyGates)
		return
	}
	expires := g.ExpiresMS
	if latest := s.after(approval.MaxTTL); expires == 0 || expires > latest { // no gate is open for longer
		expires = latest
	}
	expires += gateGrace.Milliseconds()
	s.row.OtherGates = append(s.row.OtherGates, &turnrow.OtherGate{GateId: g.GateID, TurnId: named, ExpiresMs: expires})
	if !s.makeRoomUpTo(memories) {
		s.row.OtherGates = s.row.OtherGates[:len(s.row.OtherGates)-1]
		s.deadLetter(reasonNoRoom)
		return
	}
	s.changed = true
	s.setClock()
	if s.paused() && namesTurn(named, s.row.Turn.Message) {
		s.streamClock()
	}
}

// turnNamed returns the turn that a gate names; "" if it names none.
func turnNamed(g topics.GateRequest) string {
	if g.TurnID != "" {
		return g.TurnID
	}
	turn, _, _ := strings.Cut(g.CallID, "/")
	if _, ok := turnDigest(turn); ok {
		return turn
	}
	return ""
}

// endedTurn reports whether a turn, named by its ID or its request, is remembered as ended.
func (s *session) endedTurn(named string) bool {
	d, isTurn := turnDigest(named)
	for a := range s.unfinished() {
		if namesTurn(named, a) {
			return false
		}
	}
	return isTurn && s.knowsCause(d) || s.knowsRequest(named)
}

func (s *session) hasOtherGate(id string) bool {
	return slices.ContainsFunc(s.row.OtherGates, func(g *turnrow.OtherGate) bool { return g.GateId == id })
}

// otherGateEnded applies the outcome of a gate that the turn did not open.
func (s *transition) otherGateEnded(o topics.GateOutcome) {
	if !s.rules.Gates || o.Shadow {
		return
	}
	named := turnNamed(topics.GateRequest{TurnID: o.TurnID, CallID: o.CallID})
	counts := s.rules.Memoir != nil && !s.isNew // whatever it names, see gateOpened
	if !counts && !s.hasOtherGate(o.GateID) && (named == "" || s.isNew || s.endedTurn(named)) {
		return
	}
	// Remembered, because after a crash the outcome can be read before the request.
	s.changed = true
	s.rememberCall(digests.Of(ofGate, o.GateID))
	s.settleOthers(func(g *turnrow.OtherGate) bool { return g.GateId == o.GateID })
}

// dropOthers no longer waits for some gates of other requesters.
func (s *transition) dropOthers(which func(*turnrow.OtherGate) bool) {
	n := len(s.row.OtherGates)
	s.row.OtherGates = slices.DeleteFunc(s.row.OtherGates, which)
	if len(s.row.OtherGates) < n {
		s.changed = true
		s.setClock()
	}
}

// settleOthers is dropOthers for gates that have ended while the turn goes on.
func (s *transition) settleOthers(which func(*turnrow.OtherGate) bool) {
	stopped := s.row.Turn.GetStoppedMs() != 0
	s.dropOthers(which)
	if stopped && s.row.Turn.StoppedMs == 0 {
		s.streamClock()
	}
}

// withdrawOthers withdraws the gates of other requesters that name the open turn.
func (s *transition) withdrawOthers(cause topics.GateCause) {
	a := s.row.Turn.Message
	s.dropOthers(func(g *turnrow.OtherGate) bool {
		if !namesTurn(g.TurnId, a) {
			return false
		}
		s.rememberCall(digests.Of(ofGate, g.GateId))
		if s.rules.usesGates() {
			withdrawal := gateRequested{GateID: g.GateId, SessionID: s.key, Withdrawn: cause}
			s.effects = append(s.effects, emit{
				Key: s.key, ID: a.TurnId + "/0/" + withdrawal.kind() + "/" + g.GateId, Value: withdrawal,
			})
		}
		return true
	})
}

// paused reports whether the clock of the open think step is stopped by a gate.
func (s *session) paused() bool {
	return len(s.row.OtherGates) > 0 && s.thinking() && slices.ContainsFunc(s.row.OtherGates, func(g *turnrow.OtherGate) bool {
		return namesTurn(g.TurnId, s.row.Turn.Message)
	})
}

// setClock stops the clock of the open think step, or lets it run again, depending on the gates that are open.
func (s *transition) setClock() {
	turn := s.row.Turn
	if turn == nil {
		return
	}
	switch paused := s.paused(); {
	case paused && turn.StoppedMs == 0:
		turn.StoppedMs = s.nowMS()
	case !paused && turn.StoppedMs != 0:
		turn.DeadlineMs += max(0, s.nowMS()-turn.StoppedMs)
		turn.StoppedMs = 0
	}
}

// expireOthers no longer waits for gates whose outcome is overdue.
func (s *transition) expireOthers() {
	s.settleOthers(func(g *turnrow.OtherGate) bool { return g.ExpiresMs <= s.due })
}
