package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveOutcome(e gateEnded) {
	if e.tombstone() {
		s.deadLetter(reasonTombstone)
		return
	}
	o := e.Outcome
	n, own := parseStepName(o.CallID, called{}.kind())
	if !own || o.GateID != topics.GateID(s.key, n.turn, o.CallID) {
		s.otherGateEnded(o)
		return
	}
	if o.Shadow { // the call did not wait for it
		return
	}
	r := workerReply{kind: turnrow.Held_GATE_OUTCOME, toolUseID: o.ToolUseID, digest: digests.Of(ofOutcome, e.Value), name: n}
	switch s.placeOf(n) {
	case stepToCome:
		s.holdForStep(e.record, r)
	case stepEnded:
		s.lateOutcome(o)
	default:
		switch {
		case s.thinking(): // after a crash: the response with the call is read again later
			s.holdForCall(e.record, r)
		case s.waiting(n, o.GateID) == nil:
			s.lateOutcome(o)
		default:
			if s.endGate(int(n.call), o) {
				s.claimHeld()
				s.completeStep()
			}
		}
	}
}

// waiting returns the named call of the open step if it waits for the gate, else nil.
func (s *session) waiting(n stepName, gate string) *turnrow.Call {
	calls := s.row.Turn.Calls
	if int64(n.call) >= int64(len(calls)) || calls[n.call].Gate.GetGateId() != gate {
		return nil
	}
	return calls[n.call]
}

// lateOutcome dead-letters the outcome of a gate for which no call waits. The outcome of a gate that the turn withdrew is
// expected and has no further effect.
func (s *transition) lateOutcome(o topics.GateOutcome) {
	if o.Status != topics.GateCancelled {
		s.deadLetter(reasonLateOutcome)
	}
}

// claimOutcomes applies the held outcomes of the open step's gates. An outcome that no call waits for is given up: it
// contradicts the policy, which has changed since it was held, or one before it has ended the turn. It returns false if the turn
// has ended.
func (s *transition) claimOutcomes() (open bool) {
	open = true
	turn := s.row.Turn
	held := slices.Clone(turn.Held)
	turn.Held = slices.DeleteFunc(turn.Held, isOutcome)
	for _, h := range held {
		if !isOutcome(h) {
			continue
		}
		s.changed = true
		e, err := heldEvent(h, s.key)
		outcome, ok := e.(gateEnded)
		switch {
		case err != nil || !ok:
			s.giveUp(h, reasonUnreadable)
		case !open && outcome.Outcome.Status == topics.GateCancelled:
		case !open || s.waiting(heldName(h), outcome.Outcome.GateID) == nil:
			s.giveUp(h, reasonLateOutcome)
		default:
			open = s.endGate(int(h.Call), outcome.Outcome)
		}
	}
	return open
}

// endGate applies the outcome of a waiting call's gate. It returns false if the turn has ended, because its caller cannot ask a
// person: the model must not try another way to the same end.
func (s *transition) endGate(i int, o topics.GateOutcome) (open bool) {
	c := s.row.Turn.Calls[i]
	gate := c.Gate
	c.Gate, s.changed = nil, true
	if o.Status == topics.GateApproved { // readers of the stream learn from the outcome how long the tool may be silent
		c.DeadlineMs = s.after(s.rules.ToolTimeout)
	}
	s.streamOutcome(i, gate, o)
	switch o.Status {
	case topics.GateApproved:
		s.runApproved(i, gate, o)
	case topics.GateTimedOut:
		s.endRefused(c, timedOutText, reasonOfTimeout)
	case topics.GateCancelled:
		s.endRefused(c, cancelledText(o.Cause), reasonOfCancelled)
		if o.Cause == topics.CauseParentCannotAsk {
			s.cannotAsk = true
			s.fail(failure{topics.CodeParentCannotAsk, "a call needs a person's approval, and the caller cannot ask for it"})
			return false
		}
	default:
		s.endRefused(c, deniedText(o), reasonOfDenied)
	}
	return true
}

// runApproved hands out an approved call. The outcome names the tool, and the arguments by their digest; they must be those
// that run: after a crash another response of the model may count, whose call has the same gate. The policy is evaluated
// again, because it may have changed and the arguments may have been edited: it can still deny the call.
func (s *transition) runApproved(i int, gate *turnrow.Gate, o topics.GateOutcome) {
	c := s.row.Turn.Calls[i]
	item := s.ofTurn(itemOf(gate, c, len(s.row.Turn.Calls)))
	edited := o.EffectiveArgs != nil && string(o.EffectiveArgs) != string(item.Input)
	mayEdit := !edited || s.rules.evaluate(c.Name, item.Input).Edit
	if o.EffectiveArgs != nil {
		item.Input = o.EffectiveArgs
	}
	d := s.rules.evaluate(c.Name, item.Input)
	switch {
	case o.Tool != *c.Name || topics.ArgsSHA256(item.Input) != o.EffectiveArgsSHA256:
		s.endRefused(c, "the call was refused, because the approval is for another call", reasonOfDenied)
	case !mayEdit:
		s.endRefused(c, "the call was refused, because the policy does not permit that its arguments are changed", reasonOfDenied)
	case d.Effect != approval.Allow && d.Effect != approval.Ask && !d.Shadow:
		s.endRefused(c, deniedText(topics.GateOutcome{Cause: topics.CausePolicy, Reason: d.Message}), reasonOfDenied)
	case s.sizeOfItem(item) > s.rules.limit(s.rules.accepted.tool):
		s.endRefused(c, "the tool call does not fit into a record", "too_large")
	case edited && !s.showEdited(c, gate.Input, item.Input):
		s.endRefused(c, "the changed arguments of the call do not fit into the session's row", "too_large")
	default:
		c.Edited = edited
		s.emit(s.row.Turn.Message.TurnId, s.row.Turn.Step, called(item), i)
	}
}

// showEdited replaces the arguments of a call in the open turn's conversation. It reports false, and changes nothing, if the
// row has no room for them. A conversation that does not contain the call in a known form stays unchanged.
func (s *transition) showEdited(c *turnrow.Call, from, to topics.Raw) bool {
	if !s.replaceArguments(c, from, to) || s.makeRoomInHistory(false) {
		return true
	}
	s.replaceArguments(c, to, from)
	return false
}

func (s *transition) replaceArguments(c *turnrow.Call, from, to topics.Raw) bool {
	whole, length := s.history()
	if s.err != nil {
		return true
	}
	changed, ok := withArguments(whole, c.GetToolUseId(), from, to)
	if ok {
		s.shareConversation(changed, length)
	}
	return ok
}

// supersedeGates ends the waiting calls of the open turn and withdraws all of its gates, because a newer message arrived.
func (s *transition) supersedeGates() {
	s.withdrawOthers(topics.CauseSuperseded)
	ended := false
	for i, c := range s.row.Turn.Calls {
		if c.Gate != nil {
			s.endGatedCall(i, topics.CauseSuperseded, cancelledText(topics.CauseSuperseded), reasonOfCancelled)
			ended = true
		}
	}
	if ended {
		s.completeStep()
	}
}

// giveUpGate ends the waiting call with the most stored arguments and withdraws its gate, because the row has no room for
// them. It reports whether there was one.
func (s *transition) giveUpGate() bool {
	i := largestGate(s.row.Turn)
	if i < 0 {
		return false
	}
	s.endGatedCall(i, topics.CauseParentEnded, noRoomForGate, "too_large")
	s.completeStep()
	return true
}

// timedOutText tells the model that a call did not run because of time, and not because it was refused.
const timedOutText = "no one answered in time whether the call may run, so it did not run; it was not refused"

// deniedText tells the model why a call was refused.
func deniedText(o topics.GateOutcome) string {
	text := "the call was refused"
	switch o.Cause {
	case topics.CausePolicy:
		text = "the call was refused, because the policy does not permit it"
	case topics.CauseNoRoom:
		text = "the call was refused, because the session has no room for another request for approval"
	default:
		if blank(&o.Reason) {
			return text + " by a person, who gave no reason"
		}
		return text + ", because: " + clipped(o.Reason)
	}
	if !blank(&o.Reason) {
		text += ": " + clipped(o.Reason)
	}
	return text
}

// cancelledText tells the model why no one was asked to the end.
func cancelledText(cause topics.GateCause) string {
	const text = "the call did not run, because the request for its approval was cancelled"
	switch cause {
	case topics.CauseSuperseded:
		return text + ": a newer message arrived"
	case topics.CauseParentCannotAsk:
		return text + ": the caller cannot ask a person"
	case topics.CausePurged:
		return text + ": the session was purged"
	default:
		return text
	}
}
