package turn

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// callTools applies a response that asks for tools. Every item becomes a call; an item that no tool can serve gets an error
// result immediately. previous is the number of PreviousMessages in the response.
func (s *transition) callTools(r topics.ThinkResponse, previous uint32) {
	total := int64(len(r.ToolUses) + len(r.NullToolUses))
	if total > maxCalls {
		s.fail(tooLarge(fmt.Sprintf("the model asked for %d tools at once, the limit is %d", total, maxCalls)))
		return
	}
	items := itemsOf(r)
	turn := s.row.Turn
	s.keepOwn(r, previous)
	turn.Calls = make([]*turnrow.Call, 0, len(items))
	for i := range items {
		item := &items[i]
		*item = s.ofTurn(*item)
		item.TotalTools = total
		turn.Calls = append(turn.Calls, &turnrow.Call{ToolUseId: item.ToolUseID, Name: item.Name, Result: s.unusable(*item)})
	}
	turn.DeadlineMs, turn.StoppedMs = s.after(s.rules.ToolTimeout), 0
	decisions := s.gateCalls(items)
	for !s.makeRoomInHistory(false) {
		if s.refuseLargestGate() {
			continue
		}
		// No call was emitted, so none needs a result.
		turn.Calls, turn.Responded, turn.Tail = nil, false, nil
		s.fail(tooLarge("the conversation does not fit into the session's row"))
		return
	}
	s.rememberStep()
	s.streamStepEnd()
	for i, item := range items {
		if turn.Calls[i].Result != nil {
			s.streamResult(i, turn.Calls[i].Result)
		}
		switch {
		case s.sizeOfItem(item) > s.rules.limit(s.rules.accepted.tool):
		case turn.Calls[i].Result != nil:
			s.emit(turn.Message.TurnId, turn.Step, Refused(item), i)
		default:
			s.handOut(i, item, decisions)
		}
	}
	if s.claimOutcomes() {
		s.claimHeld()
		s.completeStep()
	}
}

// itemsOf returns the items of a response's tool_uses in their order. A null becomes an item without id and name.
func itemsOf(r topics.ThinkResponse) []topics.ToolUseItem {
	items := slices.Clone(r.ToolUses)
	for _, at := range r.NullToolUses {
		items = slices.Insert(items, min(at, len(items)), topics.ToolUseItem{})
	}
	return items
}

// unusable returns the error result of an item that cannot be called, or nil if it can. The items before it must already
// be in the turn's calls.
func (s *transition) unusable(item topics.ToolUseItem) *turnrow.Result {
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
	case item.Invalid != "":
		text = clipped(item.Invalid)
	case s.sizeOfItem(item) > s.rules.limit(s.rules.accepted.tool):
		text, reason = "the tool call does not fit into a record", "too_large"
	default:
		return nil
	}
	return s.synthesise(item.ToolUseID, item.Name, int(item.TotalTools), 0, text, reason)
}

// synthesise returns an error result for a call that has no result from its tool.
func (s *transition) synthesise(id, name *string, total int, latency int64, text, reason string) *turnrow.Result {
	session, status := s.key, statusError
	return &turnrow.Result{
		SessionId: &session,
		ToolUseId: id,
		Name:      name,
		Result:    errorResult(text, reason),
		LatencyMs: latency,
		Status:    &status,
		// For information only: completion does not depend on this count.
		TotalTools: int64(total),
		Timestamp:  s.timestamp(),
	}
}

// openCall returns the open call with this tool_use_id, or nil if there is none.
func (s *transition) openCall(id string) *turnrow.Call {
	if s.row.Turn == nil {
		return nil
	}
	for _, c := range s.row.Turn.Calls {
		if !ended(c) && c.GetToolUseId() == id {
			return c
		}
	}
	return nil
}

// endCall ends a call that was handed out with its result.
func (s *transition) endCall(c *turnrow.Call, r *turnrow.Result) {
	s.measure(c, r)
	s.keepEnd(c, r)
}

// keepEnd ends a call with its result and remembers its tool_use_id, so that later results for it are recognised as late.
func (s *transition) keepEnd(c *turnrow.Call, r *turnrow.Result) {
	s.changed = true
	if c.Edited {
		r.Result = markEdited(r.Result)
	}
	s.streamResult(slices.Index(s.row.Turn.Calls, c), r)
	keepResult(s.row.Turn, c, r)
	s.rememberCall(digests.Of(ofCall, c.GetToolUseId()))
}

// endOpenCalls ends the open calls with errors and withdraws their gates.
func (s *transition) endOpenCalls(text, reason string) {
	calls := s.row.Turn.Calls
	for i, c := range calls {
		if ended(c) {
			continue
		}
		end := s.endCall
		if c.Gate != nil { // it never ran
			end = s.keepEnd
		}
		s.withdrawGate(i, s.endCause())
		end(c, s.synthesise(c.ToolUseId, c.Name, len(calls), 0, text, reason))
	}
}

// completeStep asks the model again once all calls have their results.
func (s *transition) completeStep() {
	turn := s.row.Turn
	if countOpenCalls(turn) > 0 {
		return
	}
	if f, ok := s.mayAsk(); !ok { // the limits were lowered
		s.fail(f)
		return
	}
	if !s.collectResults() {
		return
	}
	both := s.rules.BothSpellings && s.makeRoomForResults(true)
	if !both {
		s.makeRoomForResults(false)
	}
	with, fits := s.fitResults(s.roomForResults(both), both)
	if s.rules.BothSpellings && !both && s.excess(s.roomForResults(true), copies{text: true}) <= 0 { // the results were shortened
		both = true
		with, fits = s.fitResults(s.roomForResults(true), true)
	}
	message := topics.Message(s.emitResults(with))
	input := topics.EncodeMessage(message)
	message.Content = s.sortedContent(len(message.Content), both)
	if fits && s.think(input, &message, both) {
		return
	}
	turn.Calls = nil
	s.fail(tooLarge("the conversation and the tools' results do not fit into a record"))
}

// makeRoomForResults hides exchanges until the record for the model has room for the results. It reports false if there is
// not enough to hide, or nothing that would help.
func (s *transition) makeRoomForResults(both bool) bool {
	over := s.sizeOfToolMessage(copies{text: both}) - s.roomForResults(both)
	return over <= 0 || s.hideFor(spellings(both)*over, false)
}

// roomForResults returns the size of the largest tool message that fits into the record for the model, in one or both
// spellings.
func (s *transition) roomForResults(both bool) int {
	user, inputs := s.user(s.row.Turn.Message), spellings(both)
	around := envelope + 2*s.keySize() + promptSize(s.row.Turn.Message.EphemeralPrompt) + inputs*quoted(user) +
		s.rules.memoryRoom(user, both)
	return min((s.rules.limit(s.rules.accepted.model)-around-s.historySize())/inputs, s.rules.limit(s.rules.accepted.input))
}

// completeOpenCalls ends the open calls of a turn that is ending, so that every call has exactly one result. The model
// is not asked again.
func (s *transition) completeOpenCalls(f failure) {
	turn := s.row.Turn
	if len(turn.Calls) == 0 {
		return
	}
	s.endOpenCalls(f.text, string(f.code))
	if !s.collectResults() {
		return
	}
	text := s.rules.BothSpellings && s.excess(s.rules.limit(s.rules.accepted.input), copies{text: true}) <= 0
	with, _ := s.fitResults(s.rules.limit(s.rules.accepted.input), text)
	s.emitResults(with)
	turn.Calls = nil
}

// emitResults emits the completed step and its tool message, unless they exceed the record limit even with shortened
// results. It returns the tool message.
func (s *transition) emitResults(with copies) ToolMessage {
	turn := s.row.Turn
	message := s.buildToolMessage(with)
	if s.excess(s.rules.limit(s.rules.accepted.input), with) <= 0 {
		s.emit(turn.Message.TurnId, turn.Step, s.completed(), 0)
		s.emit(turn.Message.TurnId, turn.Step, message, 0)
	}
	return message
}

func (s *transition) completed() Completed {
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
		c.Results[i] = resultRecord(call.Result)
		c.Expected[i] = topics.ExpectedTool{ToolUseID: call.ToolUseId, Name: call.Name}
	}
	return c
}

// record converts a result to its topic's record type.
func resultRecord(r *turnrow.Result) topics.ToolUseResult {
	return topics.ToolUseResult{
		SessionID: r.SessionId, ToolUseID: r.ToolUseId, ToolID: r.ToolId, Name: r.Name, Result: r.Result,
		LatencyMS: r.LatencyMs, Status: r.Status, TotalTools: r.TotalTools, Timestamp: r.Timestamp,
	}
}
