package turn

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveResult(e ToolAnswered) {
	if e.tombstone() {
		s.deadLetter(reasonTombstone)
		return
	}
	id := e.Result.ToolUseID
	if blank(id) || len(*id) > maxID {
		s.deadLetter(reasonNoToolUseID)
		return
	}
	same := digests.Of(ofResult, e.Value)
	call := s.claimant(e.Record, workerReply{toolUseID: *id, tool: e.Result.Name, digest: same})
	if call == nil {
		return
	}
	s.endCallWith(call, resultOf(e.Result), same)
	s.completeStep()
}

func (s *transition) receiveToolFailure(e ToolFailed) {
	id := e.Item.ToolUseID
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
		return
	case blank(id) || len(*id) > maxID:
		return
	}
	same := digests.Of(ofFailure, e.Value)
	call := s.claimant(e.Record, workerReply{toolUseID: *id, tool: e.Item.Name, digest: same, failure: true})
	if call == nil {
		return
	}
	s.endCall(call, s.failedResult(call, e.Record))
	s.rememberCall(same)
	s.completeStep()
}

// failedResult returns the error result of a call whose tool failed. The reason is read from the failure's headers.
func (s *transition) failedResult(c *turnrow.Call, failure *Record) *turnrow.Result {
	text := "the tool failed"
	if reason := failure.headerText(topics.HeaderErrorReason); !blank(&reason) {
		text = clipped(reason)
	}
	return s.synthesise(c.ToolUseId, c.Name, len(s.row.Turn.Calls), 0, text, "tool_failed")
}

// endCallWith ends a call with a tool's own result, or with a too_large error if the row has no room for it.
func (s *transition) endCallWith(c *turnrow.Call, r *turnrow.Result, same digest) {
	s.endCall(c, r)
	s.rememberCall(same)
	if !s.makeRoomInHistory(false) {
		dropLastResult(s.row.Turn, c)
		keepResult(s.row.Turn, c, s.tooLargeResult(c, r))
	}
}

// claimant returns the open call that a tool's reply answers. If there is none, it holds or dead-letters the reply and
// returns nil.
func (s *transition) claimant(from *Record, r workerReply) *turnrow.Call {
	if n, ok := namedStep(from, Called{}.kind()); ok {
		r.name = n
		switch s.placeOf(n) {
		case stepToCome:
			s.holdForStep(from, r)
			return nil
		case stepEnded:
			s.deadLetterLate(r)
			return nil
		}
	} else if s.knowsCall(r.digest) { // a repeat; a later call may have the same tool_use_id
		s.deadLetterReply(r, reasonSameResult)
		return nil
	}
	call := s.openCall(r.toolUseID)
	switch {
	case call == nil || call.Gate != nil || !s.answers(r.name, call):
		s.holdForCall(from, r)
	case !sameTool(r.tool, call.Name):
		s.deadLetterReply(r, reasonOtherTool)
	default:
		return call
	}
	return nil
}

// sameTool reports whether a reply's tool can be that of a call. FlightDeck's workers may omit the name.
func sameTool(reply, called *string) bool {
	return blank(reply) || blank(called) || *reply == *called
}

// answers reports whether a reply can answer a call that has its tool_use_id. A reply that names a call answers only that
// call.
func (s *transition) answers(n stepName, c *turnrow.Call) bool {
	turn := s.row.Turn
	return n.turn == "" || n.turn == turn.Message.TurnId && n.step == turn.Step && int64(n.call) < int64(len(turn.Calls)) &&
		turn.Calls[n.call] == c
}

// deadLetterLate dead-letters a tool's reply that no open or later call will claim.
func (s *transition) deadLetterLate(r workerReply) {
	reason := reasonNoCall
	if s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		reason = reasonCallEnded
	}
	s.deadLetterReply(r, reason)
}

// holdForCall holds a tool's reply whose call is not open while the model may still ask for that call: after a crash the reply
// can arrive before the think-response. Any other reply is late or answers no call, and is dead-lettered. A reply whose
// tool_use_id belonged to an earlier call is late too, unless it names the open step. A reply to a call that waits for its
// approval is held too: after a crash it can arrive before the outcome that the call was handed out for.
func (s *transition) holdForCall(from *Record, r workerReply) {
	if !s.thinking() && !s.holdsBack(r) || r.name.turn == "" && s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		s.deadLetterLate(r)
		return
	}
	turn := s.row.Turn
	switch {
	case slices.ContainsFunc(turn.Held, r.answersAlike):
		s.deadLetterReply(r, reasonHeldAlready)
		return
	case len(turn.Held) >= maxHeld:
		s.deadLetterReply(r, reasonHeldFull)
		return
	}
	turn.Held = append(turn.Held, r.held(from))
	if !s.makeRoomUpTo(memories) {
		turn.Held = turn.Held[:len(turn.Held)-1]
		s.deadLetterReply(r, reasonNoRoom)
		return
	}
	s.changed = true
}

// holdsBack reports whether a tool's reply answers a call that waits for its approval.
func (s *transition) holdsBack(r workerReply) bool {
	c := s.openCall(r.toolUseID)
	return r.kind == turnrow.Held_TOOL && c != nil && c.Gate != nil && s.answers(r.name, c)
}

// answersAlike reports whether a record that is held for the open step answers the same call.
func (r workerReply) answersAlike(h *turnrow.Held) bool {
	return h.Kind == r.kind && h.ToolUseId == r.toolUseID && (r.name.turn == "" || h.TurnId == r.name.turn && h.Call == r.name.call) &&
		sameTool(heldTool(h), r.tool)
}

// heldTool returns the name of the tool whose reply is held, or nil if it is not known.
func heldTool(h *turnrow.Held) *string {
	if h.Result != nil { // written by an older build
		return h.Result.Name
	}
	switch e, _ := heldEvent(h, ""); e := e.(type) {
	case ToolAnswered:
		return e.Result.Name
	case ToolFailed:
		return e.Item.Name
	}
	return nil
}

// claimHeld ends the calls whose results are held.
func (s *transition) claimHeld() {
	turn := s.row.Turn
	// One that named a step to come is held for the open step later than it came. The first one of its topic counts.
	slices.SortStableFunc(turn.Held, func(a, b *turnrow.Held) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Offset, b.Offset))
	})
	turn.Held = slices.DeleteFunc(turn.Held, func(h *turnrow.Held) bool {
		call := s.openCall(h.ToolUseId)
		if isOutcome(h) || call == nil || call.Gate != nil || !s.answers(heldName(h), call) {
			return false
		}
		if !sameTool(heldTool(h), call.Name) {
			s.giveUp(h, reasonOtherTool)
			return true
		}
		r, ok := s.heldResult(h, call)
		if !ok {
			s.giveUp(h, reasonUnreadable)
			return true
		}
		s.endCall(call, r)
		if len(h.Digest) == digestSize {
			s.rememberCall(digest(h.Digest))
		}
		return true
	})
}

// heldResult returns the result of a call from a held record. ok is false if the record cannot be decoded.
func (s *transition) heldResult(h *turnrow.Held, c *turnrow.Call) (r *turnrow.Result, ok bool) {
	if h.Result != nil { // written by an older build
		if h.Failure {
			h.Result.Name, h.Result.TotalTools = c.Name, int64(len(s.row.Turn.Calls))
		}
		return h.Result, true
	}
	e, err := heldEvent(h, s.key)
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

// resultOf returns a tool's result as it is stored in the row. Texts longer than maxID count as absent; none of them
// identifies the result.
func resultOf(t topics.ToolUseResult) *turnrow.Result {
	return &turnrow.Result{
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
