package turn

import (
	"bytes"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Approval, the policy is evaluated for each call that the model asks for. A call that it does not allow is not
// handed out: a gate request is written in its place, and the call's item stays in the row. The gate's outcome either hands
// the call out (outcome.go), or ends it with an error result. The other calls of the response run meanwhile, on the clock
// of the step. An approved call has a clock of its own.
//
// The turn does not depend on a gate group to end: if there is no outcome gateGrace after the gate's deadline, the call ends
// as timed out and the gate is withdrawn. A call that ends for any other reason than the outcome withdraws its gate, too.

// gateGrace is how long after the deadline of a gate the turn waits for its outcome.
const gateGrace = 5 * time.Minute

// via is the turn's name in the requests of its gates.
const via = "turn"

// gateCalls gives a gate to each usable call of a new step that the policy does not allow. It returns the policy's decisions
// by call; nil without a policy.
func (s *transition) gateCalls(items []topics.ToolUseItem) []approval.Decision {
	if s.rules.Approval == nil {
		return nil
	}
	decisions := make([]approval.Decision, len(items))
	for i, item := range items {
		c := s.row.Turn.Calls[i]
		if c.Result != nil {
			continue
		}
		d := s.rules.evaluate(item.Name, item.Input)
		decisions[i] = d
		if d.Effect == approval.Allow || d.Shadow {
			continue
		}
		c.Gate = &turnrow.Gate{
			GateId: topics.GateID(s.key, s.row.Turn.Message.TurnId, s.callID(i)), ExpiresMs: s.after(d.TTL + gateGrace),
			ToolId: item.ToolID, Input: bytes.Clone(item.Input), SessionId: item.SessionID, Timestamp: item.Timestamp,
		}
		if s.sizeOfGateRequest(s.gateRequest(i, item, d)) > s.rules.limit(s.rules.accepted.gate) {
			c.Gate = nil
			c.Result = s.ungated(c, "the request for approval of the call does not fit into a record")
		}
	}
	return decisions
}

// callID is the turntable.id of a call of the open step.
func (s *session) callID(i int) string {
	return outputID(s.row.Turn.Message.TurnId, s.row.Turn.Step, called{}, i)
}

// gateRequest returns the request for the approval of a call.
func (s *session) gateRequest(i int, item topics.ToolUseItem, d approval.Decision) gateRequested {
	turn := s.row.Turn.Message.TurnId
	call := s.callID(i)
	allowed := []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny}
	if d.Edit {
		allowed = append(allowed, topics.VerdictEdit)
	}
	return gateRequested{
		GateID: topics.GateID(s.key, turn, call), SessionID: s.key, TurnID: turn, CallID: call, Kind: topics.GateTool,
		Tool: *item.Name, ToolUseID: *item.ToolUseID, Args: item.Input, ArgsSHA256: topics.ArgsSHA256(item.Input),
		Message: d.Message, Allowed: allowed, ResponseSchema: d.Schema, Dangerous: d.Dangerous,
		Origin: topics.GateOrigin{Agent: s.rules.Agent, Via: via}, Effect: string(d.Effect), Shadow: d.Shadow,
		ExpiresMS: s.after(d.TTL), Channel: originOf(s.row.Turn.Message),
	}
}

// sizeOfGateRequest returns an upper bound of the size of a request on the wire.
func (s *session) sizeOfGateRequest(g gateRequested) int {
	return envelope + 2*s.keySize() + quoted(&g.Tool) + quoted(&g.ToolUseID) + quoted(&g.Message) + quoted(&g.Origin.Agent) +
		len(g.Args) + len(g.ResponseSchema) + len(g.Channel)
}

// handOut emits the record of a new call: its gate request if it has a gate, else the call itself. Under a policy in shadow
// mode the request of a call that is not allowed is recorded beside the call.
func (s *transition) handOut(i int, item topics.ToolUseItem, decisions []approval.Decision) {
	turn := s.row.Turn
	if turn.Calls[i].Gate == nil {
		s.emit(turn.Message.TurnId, turn.Step, called(item), i)
		if decisions == nil || decisions[i].Effect == approval.Allow {
			return
		}
	}
	g := s.gateRequest(i, item, decisions[i])
	if s.sizeOfGateRequest(g) <= s.rules.limit(s.rules.accepted.gate) { // a shadow request that is too large is not recorded
		s.emit(turn.Message.TurnId, turn.Step, g, i)
	}
	if turn.Calls[i].Gate != nil {
		s.streamGate(i, g)
	}
}

// itemOf returns the item of a call that a gate holds back.
func itemOf(g *turnrow.Gate, c *turnrow.Call, total int) topics.ToolUseItem {
	item := topics.ToolUseItem{
		ToolUseID: c.ToolUseId, ToolID: g.ToolId, Name: c.Name, SessionID: g.SessionId, TotalTools: int64(total),
		Timestamp: g.Timestamp,
	}
	if len(g.Input) > 0 {
		item.Input = g.Input
	}
	return item
}

// refuseLargestGate ends the new call with the most stored arguments, whose request is not written yet, because the row has no
// room for them. It reports whether there was one.
func (s *transition) refuseLargestGate() bool {
	i := largestGate(s.row.Turn)
	if i < 0 {
		return false
	}
	c := s.row.Turn.Calls[i]
	c.Gate, c.Result = nil, s.ungated(c, noRoomForGate)
	return true
}

const noRoomForGate = "the session's row has no room for a call that waits for approval"

// ungated returns the error result of a call that cannot wait for its approval.
func (s *session) ungated(c *turnrow.Call, text string) *turnrow.Result {
	return s.synthesise(c.ToolUseId, c.Name, len(s.row.Turn.Calls), 0, text, "too_large")
}

// largestGate returns the index of the waiting call with the most stored arguments; -1 if no call waits for approval.
func largestGate(t *turnrow.OpenTurn) int {
	if t == nil {
		return -1
	}
	largest := -1
	for i, c := range t.Calls {
		if c.Gate != nil && (largest < 0 || len(c.Gate.Input) > len(t.Calls[largest].Gate.Input)) {
			largest = i
		}
	}
	return largest
}

// endGatedCall withdraws the gate of a waiting call and ends the call with an error.
func (s *transition) endGatedCall(i int, cause topics.GateCause, text, reason string) {
	c := s.row.Turn.Calls[i]
	s.withdrawGate(i, cause)
	s.endRefused(c, text, reason)
}

// endRefused ends a call that will not run with an error. Its held results are given up: the next call with its tool_use_id is
// another one.
func (s *transition) endRefused(c *turnrow.Call, text, reason string) {
	turn := s.row.Turn
	c.DeadlineMs = 0 // it does not run
	s.keepEnd(c, s.synthesise(c.ToolUseId, c.Name, len(turn.Calls), 0, text, reason))
	turn.Held = slices.DeleteFunc(turn.Held, func(h *turnrow.Held) bool {
		if h.Kind != turnrow.Held_TOOL || h.ToolUseId != c.GetToolUseId() || !s.answers(heldName(h), c) {
			return false
		}
		s.giveUp(h, reasonRefused)
		return true
	})
}

// withdrawGate withdraws the gate of a call, if it has one. The call must be ended by the caller.
func (s *transition) withdrawGate(i int, cause topics.GateCause) {
	turn := s.row.Turn
	if c := turn.Calls[i]; c.Gate != nil {
		s.withdraw(turn.Message.TurnId, turn.Step, i, c.Gate.GateId, cause)
		c.Gate = nil
	}
}

// withdraw ends a gate without a decision. Without Config.Approval and Config.Gates the group has no topic to say so, and the
// gate ends at its deadline.
func (s *transition) withdraw(turn string, step uint32, index int, gate string, cause topics.GateCause) {
	s.changed = true
	if s.rules.usesGates() {
		s.emit(turn, step, gateRequested{GateID: gate, SessionID: s.key, Withdrawn: cause}, index)
	}
}

// endCause is why the gates of a turn that ends are withdrawn.
func (s *transition) endCause() topics.GateCause {
	switch {
	case s.purging:
		return topics.CausePurged
	case s.cannotAsk:
		return topics.CauseParentCannotAsk
	default:
		return topics.CauseParentEnded
	}
}

// abandonGates withdraws the gates of a turn that is ended without the transition.
func (s *transition) abandonGates() {
	turn := s.row.Turn
	for i, c := range turn.GetCalls() {
		if id := c.GetGate().GetGateId(); id != "" && len(id) <= maxID && len(turn.GetMessage().GetTurnId()) <= maxID {
			s.withdraw(turn.GetMessage().GetTurnId(), turn.Step, i, id, topics.CauseParentEnded)
		}
	}
}
