package openai

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// reader translates the chunks of a streamed completion. Compatible servers send members of other
// types than OpenAI, and write every member: null is like no member.
type reader struct {
	client    *provider.Client
	reply     *provider.Reply
	calls     []*call
	finish    string
	reasoning reasoning
}

// chunk translates a chunk.
func (r *reader) chunk(data []byte) error {
	raw := topics.Raw(data)
	if !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return think.ErrResponse
	}
	if failure := provider.Get(raw, "error"); failure != nil {
		return &provider.Failure{Response: provider.StreamError(failure)}
	}
	if provider.String(raw, "object") == "error" { // an error that is not in a member of its own
		return &provider.Failure{Response: provider.StreamError(raw)}
	}
	if usage := provider.Get(raw, "usage"); jsontext.Value(usage).Kind() == '{' {
		r.reply.Yield(think.Delta{Usage: r.client.Usage(tokensOf(usage))})
	}
	choices, _ := topics.Elements(provider.Get(raw, "choices"))
	for _, choice := range choices {
		if number(provider.Get(choice, "index")) != 0 {
			continue // the request asks for one choice
		}
		if failure := provider.Get(choice, "error"); failure != nil {
			return &provider.Failure{Response: provider.StreamError(failure)}
		}
		r.delta(provider.Get(choice, "delta"))
		if reason := provider.String(choice, "finish_reason"); reason != "" {
			r.finish = reason
		}
	}
	return nil
}

func (r *reader) delta(raw topics.Raw) {
	r.reply.Refused = r.reply.Refused || provider.String(raw, "refusal") != ""
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

// number returns a number, which some servers write as a text or with a fraction of 0.
func number(v topics.Raw) int64 {
	n, _ := strconv.ParseFloat(topics.Text(v), 64)
	if math.IsNaN(n) {
		return 0
	}
	return int64(min(max(n, -1<<53), 1<<53))
}

// tokensOf returns the token counts of a completion. Cached tokens are part of the prompt tokens, tokens of the reasoning
// part of the completion tokens.
func tokensOf(usage topics.Raw) think.Tokens {
	details := provider.Get(usage, "prompt_tokens_details")
	read, written := number(provider.Get(details, "cached_tokens")), number(provider.Get(details, "cache_write_tokens"))
	return think.Tokens{
		Input:     max(number(provider.Get(usage, "prompt_tokens"))-read-written, 0),
		CacheRead: read, CacheWrite: written, Output: number(provider.Get(usage, "completion_tokens")),
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
