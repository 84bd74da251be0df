package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// reader translates the events of a streamed message.
type reader struct {
	usage  func(think.Tokens) *think.Usage
	tokens think.Tokens
	blocks map[int64]*call // the open tool calls
	calls  bool
	text   bool
	stop   sdk.StopReason
	ended  bool
}

// call is a tool call whose input is not complete.
type call struct {
	id, name string
	input    strings.Builder
}

// event translates an event. more is false if yield stopped.
func (r *reader) event(e sdk.MessageStreamEventUnion, yield func(think.Delta) bool) (more bool, err error) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		r.tokens = think.Tokens{
			Input: u.InputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
			Output: u.OutputTokens,
		}
		return yield(think.Delta{Usage: r.usage(r.tokens)}), nil // what a call costs that is cancelled later
	case "content_block_start":
		return r.start(e.Index, e.ContentBlock, yield), nil
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return r.say(e.Delta.Text, yield), nil
		case "thinking_delta":
			return e.Delta.Thinking == "" || yield(think.Delta{Thought: e.Delta.Thinking}), nil
		case "input_json_delta":
			if c := r.blocks[e.Index]; c != nil {
				c.input.WriteString(e.Delta.PartialJSON)
			}
		}
	case "content_block_stop":
		return r.stopBlock(e.Index, yield)
	case "message_delta":
		r.stop = e.Delta.StopReason
		r.count(e.Usage)
		return yield(think.Delta{Usage: r.usage(r.tokens), Stop: string(r.stop)}), nil
	case "message_stop":
		r.ended = true
	}
	return true, nil
}

func (r *reader) start(index int64, b sdk.ContentBlockStartEventContentBlockUnion, yield func(think.Delta) bool) bool {
	switch b.Type {
	case "text":
		return r.say(b.Text, yield)
	case "tool_use":
		if r.blocks == nil {
			r.blocks = map[int64]*call{}
		}
		r.blocks[index], r.calls = &call{id: b.ID, name: b.Name}, true
	}
	return true
}

func (r *reader) say(text string, yield func(think.Delta) bool) bool {
	if text == "" {
		return true
	}
	r.text = true
	return yield(think.Delta{Text: text})
}

// stopBlock ends a block. A call whose input is not complete is reported by end, which knows why.
func (r *reader) stopBlock(index int64, yield func(think.Delta) bool) (more bool, err error) {
	c := r.blocks[index]
	if c == nil {
		return yield(think.Delta{EndBlock: true}), nil
	}
	input := jsontext.Value(c.input.String())
	if strings.TrimSpace(c.input.String()) == "" {
		input = jsontext.Value("{}")
	}
	if input.Kind() != '{' || !input.IsValid(jsontext.AllowDuplicateNames(true)) {
		return true, nil
	}
	delete(r.blocks, index)
	return yield(think.Delta{Call: &think.Call{ID: c.id, Name: c.name, Input: topics.Raw(input)}}), nil
}

// count replaces the token counts that the event has. They are totals.
func (r *reader) count(u sdk.MessageDeltaUsage) {
	for _, c := range []struct {
		sent bool
		now  int64
		held *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &r.tokens.Input},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &r.tokens.CacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &r.tokens.CacheWrite},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &r.tokens.Output},
	} {
		if c.sent {
			*c.held = c.now
		}
	}
}

// end judges the message when its stream has ended. A text that was cut off at the token limit is still a reply. A message
// with tool calls is not, because their input may be incomplete.
func (r *reader) end() error {
	switch {
	case !r.ended:
		return think.ErrResponse
	case r.stop == sdk.StopReasonRefusal:
		return think.ErrRefused
	case r.stop == sdk.StopReasonMaxTokens, r.stop == sdk.StopReasonModelContextWindowExceeded:
		if r.calls || !r.text {
			return think.ErrTruncated
		}
		return nil
	case len(r.blocks) > 0:
		return think.ErrResponse
	case r.stop == sdk.StopReasonToolUse && r.calls, r.stop == sdk.StopReasonEndTurn, r.stop == sdk.StopReasonStopSequence:
		return nil
	default: // pause_turn is for tools that the API runs, which the request does not enable
		return think.ErrResponse
	}
}
