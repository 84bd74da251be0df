package openai

import (
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

// reader translates the chunks of a streamed completion.
type reader struct {
	usage   func(think.Tokens) *think.Usage
	id      func(i int) string
	calls   []*call
	text    bool
	refused bool
	finish  string
}

// call is a tool call whose arguments are not complete.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// chunk translates a chunk. more is false if yield stopped.
func (r *reader) chunk(c sdk.ChatCompletionChunk, yield func(think.Delta) bool) (more bool, err error) {
	if c.JSON.Usage.Valid() {
		if !yield(think.Delta{Usage: r.usage(tokensOf(c.Usage))}) {
			return false, nil
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // the request asks for one choice
		}
		d := choice.Delta
		r.refused = r.refused || d.Refusal != ""
		for _, t := range d.ToolCalls {
			r.add(t)
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
		if d.Content != "" {
			r.text = true
			if !yield(think.Delta{Text: d.Content}) {
				return false, nil
			}
		}
	}
	return true, nil
}

// add adds a piece of a call. The first piece has its ID and name.
func (r *reader) add(t sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *call
	for _, known := range r.calls {
		if known.index == t.Index && (t.ID == "" || t.ID == known.id) {
			c = known
		}
	}
	if c == nil { // servers that send each call in one piece can give all of them the same index
		c = &call{index: t.Index, id: t.ID}
		r.calls = append(r.calls, c)
	}
	c.name += t.Function.Name
	c.arguments.WriteString(t.Function.Arguments)
}

// tokensOf returns the token counts of a completion. Cached tokens are part of the prompt tokens, tokens of the reasoning
// part of the completion tokens.
func tokensOf(u sdk.CompletionUsage) think.Tokens {
	d := u.PromptTokensDetails
	return think.Tokens{
		Input: max(u.PromptTokens-d.CachedTokens-d.CacheWriteTokens, 0), CacheRead: d.CachedTokens,
		CacheWrite: d.CacheWriteTokens, Output: u.CompletionTokens,
	}
}

// end yields the calls and judges the completion when its stream has ended. A text that was cut off at the token limit is
// still a reply. A completion with calls is not, because their arguments may be incomplete.
func (r *reader) end(yield func(think.Delta) bool) error {
	stop := "end_turn"
	switch {
	case r.refused, r.finish == "content_filter":
		return think.ErrRefused
	case r.finish == "length":
		if len(r.calls) > 0 || !r.text {
			return think.ErrTruncated
		}
		stop = "max_tokens"
	case r.finish != "stop" && r.finish != "tool_calls":
		return think.ErrResponse
	case len(r.calls) > 0: // also with the reason stop, which some servers send with calls
		stop = "tool_use"
	case r.finish == "tool_calls":
		return think.ErrResponse
	}
	for i, c := range r.calls {
		input, ok := objectOf(c.arguments.String())
		if !ok || c.name == "" {
			return think.ErrResponse
		}
		if c.id == "" {
			c.id = r.id(i)
		}
		if !yield(think.Delta{Call: &think.Call{ID: c.id, Name: c.name, Input: input}}) {
			return nil
		}
	}
	yield(think.Delta{Stop: stop})
	return nil
}
