package turn

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// call takes a response that asks for tools: every item becomes a call, those that no tool can serve with their result
// at once. previous is how many PreviousMessages the response has.
func (s *session) call(r topics.ThinkResponse, previous uint32) {
	total := int64(len(r.ToolUses) + len(r.NullToolUses))
	if total > maxCalls {
		s.fail(tooLarge(fmt.Sprintf("the model asked for %d tools at once, the limit is %d", total, maxCalls)))
		return
	}
	items := itemsOf(r)
	turn := s.row.Turn
	s.keepOwn(r, previous)
	turn.Calls = make([]*Call, 0, len(items))
	for i := range items {
		item := &items[i]
		item.TotalTools = total
		turn.Calls = append(turn.Calls, &Call{ToolUseId: item.ToolUseID, Name: item.Name, Result: s.unusable(*item)})
	}
	turn.DeadlineMs = s.after(s.rules.ToolTimeout)
	if !s.makeRoom() {
		// No call was emitted: none is to be completed.
		turn.Calls, turn.Responded, turn.Tail = nil, false, nil
		s.fail(tooLarge("the conversation does not fit into the session's row"))
		return
	}
	s.rememberStep()
	for i, item := range items {
		switch {
		case s.sizeOfItem(item) > s.rules.RecordLimit:
		case turn.Calls[i].Result != nil:
			s.emit(turn.Message.TurnId, turn.Step, Refused(item), i)
		default:
			s.emit(turn.Message.TurnId, turn.Step, Called(item), i)
		}
	}
	s.claimHeld()
	s.completeStep()
}

// itemsOf returns the items of a response's tool_uses in their order. A null is an item without id and name.
func itemsOf(r topics.ThinkResponse) []topics.ToolUseItem {
	items := slices.Clone(r.ToolUses)
	for _, at := range r.NullToolUses {
		items = slices.Insert(items, min(at, len(items)), topics.ToolUseItem{})
	}
	return items
}

// unusable is the result of an item that is no call, nil for a call. The items ahead of it are calls already.
func (s *session) unusable(item topics.ToolUseItem) *Result {
	text, reason := "", "invalid_tool_call"
	switch {
	case blank(item.ToolUseID):
		text = "the tool call has no tool_use_id"
	case blank(item.Name):
		text = "the tool call has no name"
	case len(*item.ToolUseID) > maxID, len(*item.Name) > maxID:
		text = fmt.Sprintf("the tool call's tool_use_id or name is longer than %d bytes", maxID)
	case s.openCall(*item.ToolUseID) != nil:
		text = "the tool_use_id is that of another call of the same response"
	case s.sizeOfItem(item) > s.rules.RecordLimit:
		text, reason = "the tool call does not fit into a record", "too_large"
	default:
		return nil
	}
	return s.synthesise(item.ToolUseID, item.Name, int(item.TotalTools), 0, text, reason)
}

// synthesise is the result of a call that has none of its own.
func (s *session) synthesise(id, name *string, total int, latency int64, text, reason string) *Result {
	session, status := s.key, statusError
	return &Result{
		SessionId: &session, // the row's own
		ToolUseId: id,
		Name:      name,
		Result:    errorResult(text, reason),
		LatencyMs: latency,
		Status:    &status,
		// A count, which everybody who reads it may ignore.
		TotalTools: int64(total),
		Timestamp:  s.timestamp(),
	}
}

func errorResult(text, reason string) []byte {
	b := appendText([]byte(`{"error":`), &text)
	b = appendText(append(b, `,"reason":`...), &reason)
	return append(b, '}')
}

// openCall is the open call with an id, nil where there is none.
func (s *session) openCall(id string) *Call {
	if s.row.Turn == nil {
		return nil
	}
	for _, c := range s.row.Turn.Calls {
		if !c.ended() && c.GetToolUseId() == id {
			return c
		}
	}
	return nil
}

// end ends a call with its result. Its id is remembered: what comes for it from now on is late.
func (s *session) end(c *Call, r *Result) {
	s.changed = true
	s.row.Turn.keepResult(c, r)
	s.rememberCall(digests.Of(ofCall, c.GetToolUseId()))
}

// timeOutCalls ends the calls that are still open.
func (s *session) timeOutCalls() {
	ms := s.rules.ToolTimeout.Milliseconds()
	s.endOpenCalls(ms, fmt.Sprintf("async tool did not respond within %dms", ms), "timeout")
	s.completeStep()
}

func (s *session) endOpenCalls(latency int64, text, reason string) {
	calls := s.row.Turn.Calls
	for _, c := range calls {
		if !c.ended() {
			s.end(c, s.synthesise(c.ToolUseId, c.Name, len(calls), latency, text, reason))
		}
	}
}

// completeStep asks the model again once all calls have their results.
func (s *session) completeStep() {
	turn := s.row.Turn
	if openCalls(turn) > 0 || !s.collectResults() {
		return
	}
	around := envelope + 2*s.keySize() + quoted(s.user(turn.Message)) + s.historySize()
	short, fits := s.fitResults(s.rules.RecordLimit - around)
	message := topics.Message(s.emitResults(short))
	input := topics.EncodeMessage(message)
	message.Content = sortedContent(turn.Calls, len(message.Content))
	if fits && s.think(input, &message) {
		return
	}
	turn.Calls = nil
	s.fail(tooLarge("the conversation and the tools' results do not fit into a record"))
}

// completeOpenCalls ends the calls of a turn that ends before them, so that every call has its one result. Nobody is
// asked about them any more.
func (s *session) completeOpenCalls(f failure) {
	turn := s.row.Turn
	if len(turn.Calls) == 0 {
		return
	}
	s.endOpenCalls(0, f.text, string(f.code))
	if !s.collectResults() {
		return
	}
	short, _ := s.fitResults(s.rules.RecordLimit)
	s.emitResults(short)
	turn.Calls = nil
}

// emitResults writes the completed step and its tool message, unless the ids alone are larger than a record.
func (s *session) emitResults(short bool) ToolMessage {
	turn := s.row.Turn
	message := s.buildToolMessage(short)
	if s.excess(s.rules.RecordLimit, short) <= 0 {
		s.emit(turn.Message.TurnId, turn.Step, s.completed(), 0)
		s.emit(turn.Message.TurnId, turn.Step, message, 0)
	}
	return message
}

func (s *session) completed() Completed {
	turn := s.row.Turn
	c := Completed{
		SessionID:     &s.key,
		UserID:        turn.UserId,
		ExpectedCount: int64(len(turn.Calls)),
		Results:       make([]topics.ToolUseResult, len(turn.Calls)),
		Expected:      make([]topics.ExpectedTool, len(turn.Calls)),
		DeadlineMS:    turn.DeadlineMs,
		Emitted:       true,
		Timestamp:     s.timestamp(),
	}
	for i, call := range turn.Calls {
		c.Results[i] = call.Result.record()
		c.Expected[i] = topics.ExpectedTool{ToolUseID: call.ToolUseId, Name: call.Name}
	}
	return c
}

// record is a result as its topic has it.
func (r *Result) record() topics.ToolUseResult {
	return topics.ToolUseResult{
		SessionID: r.SessionId, ToolUseID: r.ToolUseId, ToolID: r.ToolId, Name: r.Name, Result: r.Result,
		LatencyMS: r.LatencyMs, Status: r.Status, TotalTools: r.TotalTools, Timestamp: r.Timestamp,
	}
}
