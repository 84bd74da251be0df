package turn

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// receiveResult ends a call. claimant (reply.go) holds a result that is early and dead-letters one that is late.
func (s *transition) receiveResult(e toolAnswered) {
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
	call := s.claimant(e.record, workerReply{toolUseID: *id, tool: e.Result.Name, digest: same})
	if call == nil {
		return
	}
	s.endCallWith(call, resultOf(e.Result), same)
	s.completeStep()
}

func (s *transition) receiveToolFailure(e toolFailed) {
	id := e.Item.ToolUseID
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
		return
	case blank(id) || len(*id) > maxID:
		return
	}
	same := digests.Of(ofFailure, e.Value)
	call := s.claimant(e.record, workerReply{toolUseID: *id, tool: e.Item.Name, digest: same, failure: true})
	if call == nil {
		return
	}
	s.endCall(call, s.failedResult(call, e.record))
	s.rememberCall(same)
	s.completeStep()
}

// failedResult returns the error result of a call whose tool failed. The reason is read from the failure's headers.
func (s *session) failedResult(c *turnrow.Call, failure *record) *turnrow.Result {
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
	case toolAnswered:
		return resultOf(e.Result), true
	case toolFailed:
		return s.failedResult(c, e.record), true
	}
	return nil, false
}
