package turn

import (
	"fmt"
	"slices"

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
	turn.UserId = s.row.UserId
	s.shareConversation(conversation(r, previous))
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
			s.emit(turn.Message.TurnId, turn.Step, refused(item), i)
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
func (s *session) unusable(item topics.ToolUseItem) *turnrow.Result {
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
