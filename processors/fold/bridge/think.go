package bridge

import (
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Think translates one turn: its think-responses (the model's texts, its tool calls) and the tool results between them, in order.
// Each text is a complete message, not a block of deltas. The zero value is ready to use. It is not safe for concurrent use.
type Think struct {
	turn          Turn
	input, output int64
}

// Response translates a think-response. If it ends the turn, the last event is done with the stop reason end_turn. The
// previous messages are not part of the turn and are ignored.
func (b *Think) Response(r topics.ThinkResponse) ([]folder.Event, error) {
	known := map[string]int{} // calls of the turn with that ID, from earlier steps and of this one so far
	for _, tool := range r.ToolUses {
		if tool.ToolUseID != nil {
			known[*tool.ToolUseID] = b.turn.Calls(*tool.ToolUseID)
		}
	}
	for _, message := range Elements(r.LastInputResponse) {
		b.message(message)
	}
	for _, tool := range r.ToolUses {
		if tool.ToolUseID == nil {
			continue
		}
		// The message may contain the call already.
		if known[*tool.ToolUseID]++; b.turn.Calls(*tool.ToolUseID) < known[*tool.ToolUseID] {
			b.turn.Begin(*tool.ToolUseID, optional(tool.Name), tool.Input)
		}
	}
	b.input += r.ThinkInputTokens
	b.output += r.ThinkOutputTokens
	b.turn.Usage(integer(b.input), integer(b.output), integer(b.input+b.output), nil)
	if r.EndTurn {
		b.turn.Done("end_turn")
	}
	return b.turn.Take()
}

// Results translates the results of a response's tool calls.
func (b *Think) Results(r topics.ToolResults) ([]folder.Event, error) {
	for _, result := range r.Results {
		if result.ToolUseID != nil {
			b.turn.Result(*result.ToolUseID, result.Result, result.Status != nil && *result.Status == "error")
		}
	}
	return b.turn.Take()
}

// Failure ends a turn whose think step failed.
func (b *Think) Failure(f topics.ThinkFailure) ([]folder.Event, error) {
	message := "think step failed"
	if f.Reason != nil {
		message = *f.Reason
	}
	b.turn.Fail(message)
	return b.turn.Take()
}
