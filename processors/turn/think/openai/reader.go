package openai

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// reader translates the chunks of a streamed completion. It reads their JSON, because compatible servers send members of other
// types than those that the SDK knows.
type reader struct {
	client    *provider.Client
	reply     *provider.Reply
	calls     []*call
	finish    string
	reasoning reasoning
}

// chunks are the events of a stream. Servers that write every member write "error":null in chunks without one, which the SDK takes
// for an error.
type chunks struct {
	ssestream.Decoder
}

// Event implements ssestream.Decoder.
func (c *chunks) Event() ssestream.Event {
	e := c.Decoder.Event()
	members := map[string]jsontext.Value{}
	if bytes.Contains(e.Data, []byte(`"error"`)) && json.Unmarshal(e.Data, &members) == nil && members["error"].Kind() == 'n' {
		delete(members, "error")
		if without, err := json.Marshal(members, json.Deterministic(true)); err == nil {
			e.Data = without
		}
	}
	return e
}

// chunk translates a chunk.
func (r *reader) chunk(c sdk.ChatCompletionChunk) error {
	if c.Object == "error" { // an error that is not in a member of its own
		return &provider.Failure{Response: provider.StreamError(topics.Raw(c.RawJSON()))}
	}
	if c.JSON.Usage.Valid() {
		r.reply.Yield(think.Delta{Usage: r.client.Usage(tokensOf(c.Usage))})
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // the request asks for one choice
		}
		if failure := provider.Get(topics.Raw(choice.RawJSON()), "error"); failure != nil {
			return &provider.Failure{Response: provider.StreamError(failure)}
		}
		r.delta(choice.Delta)
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
	return nil
}

func (r *reader) delta(d sdk.ChatCompletionChunkChoiceDelta) {
	raw := topics.Raw(d.RawJSON())
	r.reply.Refused = r.reply.Refused || d.Refusal != ""
	r.reasoning.add(raw)
	pieces, _ := topics.Elements(provider.Get(raw, "tool_calls"))
	for _, piece := range pieces {
		r.add(piece, provider.Get(piece, "function"))
	}
	if f := provider.Get(raw, "function_call"); jsontext.Value(f).Kind() == '{' { // the older form, for one call
		r.add(nil, f)
	}
	r.say(provider.Get(raw, "content"))
}

// say adds a text, or the texts of a list of parts. The other parts, such as those of the reasoning, are not for the user.
func (r *reader) say(content topics.Raw) {
	switch jsontext.Value(content).Kind() {
	case '"':
		r.reply.Say(content)
	case '{':
		switch topics.Text(provider.Get(content, "type")) {
		case "text", "output_text":
			r.reply.Say(provider.Get(content, "text"))
		}
	case '[':
		parts, _ := topics.Elements(content)
		for _, part := range parts {
			if jsontext.Value(part).Kind() != '[' {
				r.say(part)
			}
		}
	}
}

func number(v topics.Raw) int64 {
	n, _ := strconv.ParseInt(topics.Text(v), 10, 64)
	return n
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

// end adds the calls and ends the reply.
func (r *reader) end() error {
	if r.finish == "" && !r.reply.Refused {
		return provider.ErrNoReason
	}
	for _, c := range r.calls {
		r.reply.Call(c.id, c.name, c.arguments.String()+c.joiner.End())
	}
	if state := r.reasoning.state(); state != nil && len(r.calls) > 0 {
		r.client.State(r.reply, state)
	}
	return r.reply.End(r.finish)
}
