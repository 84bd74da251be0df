package turn

import (
	"bytes"
	"slices"
	"strings"

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
	if s.knowsCall(same) {
		s.refuse(reasonSameResult)
		return
	}
	r := resultOf(e.Result)
	call := s.openCall(*id)
	if call == nil {
		s.early(e.Record, *id, &Held{ToolUseId: *id, Result: r, Digest: bytes.Clone(same[:])})
		return
	}
	s.endWith(call, r, same)
	s.completeStep()
}

func (e ToolFailed) apply(s *session) {
	id := e.Item.ToolUseID
	switch {
	case e.Own: // ours is answered already
		return
	case e.tombstone():
		s.refuse(reasonTombstone)
		return
	case blank(id) || len(*id) > maxID:
		return
	}
	same := digests.Of(ofFailure, e.Value)
	if s.knowsCall(same) {
		return // the same failure again, whose id another call may have by now
	}
	text := "the tool failed"
	if reason := e.headerText(topics.HeaderErrorReason); !blank(&reason) {
		text = clipped(reason)
	}
	call := s.openCall(*id)
	if call == nil {
		if s.thinking() {
			r := s.synthesise(id, e.Item.Name, int(e.Item.TotalTools), 0, text, "tool_failed")
			s.early(e.Record, *id, &Held{ToolUseId: *id, Result: r, Failure: true, Digest: bytes.Clone(same[:])})
		}
		return
	}
	s.end(call, s.synthesise(call.ToolUseId, call.Name, len(s.row.Turn.Calls), 0, text, "tool_failed"))
	s.rememberCall(same)
	s.completeStep()
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

// early holds a result whose call is not open while the model may still ask for it (R25): after a crash it can come
// ahead of its think-response. Any other is late, or nobody's. Under an id that had a call before it is late too,
// unless its turntable.id says that it answers the open step.
func (s *session) early(from *Record, id string, h *Held) {
	refuse := func(reason string) {
		if !h.Failure {
			s.refuse(reason)
		}
	}
	switch {
	case s.knowsCall(digests.Of(ofCall, id)) && !s.answersStep(from):
		refuse(reasonCallEnded)
		return
	case !s.thinking():
		refuse(reasonNoCall)
		return
	}
	turn := s.row.Turn
	switch {
	case slices.ContainsFunc(turn.Held, func(o *Held) bool { return o.ToolUseId == id }):
		refuse(reasonHeldAlready)
		return
	case len(turn.Held) >= maxHeld:
		refuse(reasonHeldFull)
		return
	}
	h.Topic, h.Partition, h.Offset = from.Topic, from.Partition, from.Offset
	h.Value, h.Headers = bytes.Clone(from.Value), cloneHeaders(from.Headers) // the row's own: it outlives the record
	turn.Held = append(turn.Held, h)
	if !s.fits() {
		turn.Held = slices.Delete(turn.Held, len(turn.Held)-1, len(turn.Held))
		refuse(reasonNoRoom)
		return
	}
	s.changed = true
}

// answersStep reports whether a record's own id derives from that of a call which the open think step will make: it was
// made before a crash. The workers of package tools name their results so, and drop the repeated call.
func (s *session) answersStep(r *Record) bool {
	if !r.Own || !s.thinking() {
		return false
	}
	turn := s.row.Turn
	first := outputID(turn.Message.TurnId, turn.Step, Called{}, 0)
	return strings.HasPrefix(r.Cause, strings.TrimSuffix(first, "0"))
}

func cloneHeaders(headers []*Header) (clones []*Header) {
	for _, h := range headers {
		clones = append(clones, &Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)})
	}
	return clones
}

// claimHeld ends the calls whose results came before them.
func (s *session) claimHeld() {
	turn := s.row.Turn
	turn.Held = slices.DeleteFunc(turn.Held, func(h *Held) bool {
		call := s.openCall(h.ToolUseId)
		if call == nil {
			return false
		}
		if h.Failure {
			h.Result.Name, h.Result.TotalTools = call.Name, int64(len(turn.Calls))
		}
		s.end(call, h.Result)
		if len(h.Digest) == digestSize {
			s.rememberCall(digest(h.Digest))
		}
		return true
	})
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
