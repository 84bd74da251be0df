// Package think turns the think-responses of a turn into canonical events: what the model said, the tools it called and
// what they answered. A record comes whole, so its texts are whole messages.
package think

import (
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// Bridge translates one turn: its think-responses and the results between them, in order. The zero value is ready. It
// is not safe for concurrent use.
type Bridge struct {
	turn          bridge.Turn
	input, output int64
}

// Response translates a think-response. One that ends the turn ends with the stop reason end_turn, one that asks for
// tools leaves the turn open. The conversation before it is not of this turn.
func (b *Bridge) Response(r topics.ThinkResponse) ([]fold.Event, error) {
	for _, message := range bridge.Elements(r.LastInputResponse) {
		b.message(message)
	}
	for _, tool := range r.ToolUses {
		// What the message has said already is no news.
		if tool.ToolUseID != nil && !b.turn.Called(*tool.ToolUseID) {
			b.turn.Call(*tool.ToolUseID, text(tool.Name), tool.Input)
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

// Results translates the results of the tools that a response asked for.
func (b *Bridge) Results(r topics.ToolResults) ([]fold.Event, error) {
	for _, result := range r.Results {
		if result.ToolUseID != nil {
			b.turn.Result(*result.ToolUseID, result.Result, result.Status != nil && *result.Status == "error")
		}
	}
	return b.turn.Take()
}

// Failure ends a turn whose think step failed.
func (b *Bridge) Failure(f topics.ThinkFailure) ([]fold.Event, error) {
	message := "think step failed"
	if f.Reason != nil {
		message = *f.Reason
	}
	b.turn.Fail(message)
	return b.turn.Take()
}
