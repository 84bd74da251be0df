package turn

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

func (e ToolAnswered) apply(s *session) {
	if e.tombstone() {
		s.refuse(reasonTombstone)
		return
	}
	id := e.Result.ToolUseID
	if blank(id) || len(*id) > maxID {
		s.refuse(reasonNoToolUseID)
		return
	}
	same := digests.Of(ofResult, e.Value)
	call := s.claimant(e.Record, workerReply{toolUseID: *id, digest: same})
	if call == nil {
		return
	}
	s.endWith(call, resultOf(e.Result), same)
	s.completeStep()
}

func (e ToolFailed) apply(s *session) {
	id := e.Item.ToolUseID
	_, named := namedStep(e.Record, Called{}.kind())
	switch {
	case e.Own && !named: // ours is answered already; a worker may pass on the id of the call that failed
		return
	case e.tombstone():
		s.refuse(reasonTombstone)
		return
	case blank(id) || len(*id) > maxID:
		return
	}
	same := digests.Of(ofFailure, e.Value)
	call := s.claimant(e.Record, workerReply{toolUseID: *id, digest: same, failure: true})
	if call == nil {
		return
	}
	s.end(call, s.failedResult(call, e.Record))
	s.rememberCall(same)
	s.completeStep()
}

// failedResult is the result of a call whose tool failed; the headers of the failure say why.
func (s *session) failedResult(c *Call, failure *Record) *Result {
	text := "the tool failed"
	if reason := failure.headerText(topics.HeaderErrorReason); !blank(&reason) {
		text = clipped(reason)
	}
	return s.synthesise(c.ToolUseId, c.Name, len(s.row.Turn.Calls), 0, text, "tool_failed")
}

// endWith ends a call with a tool's own result, or, where the row has no room for it, with an error that says so.
func (s *session) endWith(c *Call, r *Result, same digest) {
	s.end(c, r)
	s.rememberCall(same)
	if !s.makeRoom() {
		s.row.Turn.dropLastResult(c)
		s.row.Turn.keepResult(c, s.tooLargeResult(c, r))
	}
}

// claimant is the open call that a tool's reply answers. It is nil where no open call does: the reply is held, or refused.
func (s *session) claimant(from *Record, r workerReply) *Call {
	if n, ok := namedStep(from, Called{}.kind()); ok {
		r.name = n
		switch s.placeOf(n) {
		case stepToCome:
			s.hold(from, r)
			return nil
		case stepEnded:
			s.refuseLate(r)
			return nil
		}
	} else if s.knowsCall(r.digest) { // a repeat, whose tool_use_id another call may have by now
		s.refuseReply(r, reasonSameResult)
		return nil
	}
	if call := s.openCall(r.toolUseID); call != nil && s.answers(r.name, call) {
		return call
	}
	s.early(from, r)
	return nil
}

// answers reports whether a reply may be that of a call with its tool_use_id: one that names a call answers no other.
func (s *session) answers(n stepName, c *Call) bool {
	turn := s.row.Turn
	return n.turn == "" || n.turn == turn.Message.TurnId && n.step == turn.Step && int64(n.call) < int64(len(turn.Calls)) &&
		turn.Calls[n.call] == c
}

// refuseLate refuses a tool's reply that no call will claim.
func (s *session) refuseLate(r workerReply) {
	reason := reasonNoCall
	if s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		reason = reasonCallEnded
	}
	s.refuseReply(r, reason)
}

// early holds a tool's reply whose call is not open while the model may still ask for it: after a crash it can come ahead
// of the think-response. Any other is late, or answers no call. A tool_use_id that had a call before makes it late too,
// unless it names the open step.
func (s *session) early(from *Record, r workerReply) {
	if !s.thinking() || r.name.turn == "" && s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		s.refuseLate(r)
		return
	}
	turn := s.row.Turn
	switch {
	case slices.ContainsFunc(turn.Held, r.answersAlike):
		s.refuseReply(r, reasonHeldAlready)
		return
	case len(turn.Held) >= maxHeld:
		s.refuseReply(r, reasonHeldFull)
		return
	}
	turn.Held = append(turn.Held, r.held(from))
	if !s.makeRoomUpTo(memories) {
		turn.Held = turn.Held[:len(turn.Held)-1]
		s.refuseReply(r, reasonNoRoom)
		return
	}
	s.changed = true
}

// answersAlike reports whether a record that is held for the open step answers the same call.
func (r workerReply) answersAlike(h *Held) bool {
	return h.ToolUseId == r.toolUseID && (r.name.turn == "" || h.TurnId == r.name.turn && h.Call == r.name.call)
}

// claimHeld ends the calls whose results came before them.
func (s *session) claimHeld() {
	turn := s.row.Turn
	// One that named a step to come is held for the open step later than it came. The first one of its topic counts.
	slices.SortStableFunc(turn.Held, func(a, b *Held) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Offset, b.Offset))
	})
	turn.Held = slices.DeleteFunc(turn.Held, func(h *Held) bool {
		call := s.openCall(h.ToolUseId)
		if call == nil || !s.answers(h.name(), call) {
			return false
		}
		r, ok := s.heldResult(h, call)
		if !ok {
			s.giveUp(h, reasonUnreadable)
			return true
		}
		s.end(call, r)
		if len(h.Digest) == digestSize {
			s.rememberCall(digest(h.Digest))
		}
		return true
	})
}

// heldResult is what a held record says of its call; ok is false where it cannot be read.
func (s *session) heldResult(h *Held, c *Call) (r *Result, ok bool) {
	if h.Result != nil { // of an older build
		if h.Failure {
			h.Result.Name, h.Result.TotalTools = c.Name, int64(len(s.row.Turn.Calls))
		}
		return h.Result, true
	}
	e, err := h.event(s.key)
	if err != nil {
		return nil, false
	}
	switch e := e.(type) {
	case ToolAnswered:
		return resultOf(e.Result), true
	case ToolFailed:
		return s.failedResult(c, e.Record), true
	}
	return nil, false
}

// holdsValues reports whether the turn holds records whose results are read from their values.
func (t *OpenTurn) holdsValues() bool {
	return t != nil && slices.ContainsFunc(t.Held, func(h *Held) bool { return h.Result == nil })
}

// resultOf is a tool's result as the row keeps it. Over-long texts in it count as absent; they identify nothing.
func resultOf(t topics.ToolUseResult) *Result {
	return &Result{
		SessionId:  boundedID(t.SessionID),
		ToolUseId:  t.ToolUseID,
		ToolId:     boundedID(t.ToolID),
		Name:       boundedID(t.Name),
		Result:     bytes.Clone(t.Result),
		LatencyMs:  t.LatencyMS,
		Status:     boundedID(t.Status),
		TotalTools: t.TotalTools,
		Timestamp:  boundedID(t.Timestamp),
	}
}
