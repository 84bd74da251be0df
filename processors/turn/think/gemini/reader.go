package gemini

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// reader translates the chunks of a streamed response.
type reader struct {
	client     *provider.Client
	reply      *provider.Reply
	signatures map[string][]byte // by the number of the call
	finish     genai.FinishReason
}

// chunk translates a chunk.
func (r *reader) chunk(c *genai.GenerateContentResponse) {
	if c.UsageMetadata != nil {
		r.reply.Yield(think.Delta{Usage: r.client.Usage(tokensOf(c.UsageMetadata))})
	}
	if c.PromptFeedback != nil && c.PromptFeedback.BlockReason != "" {
		r.reply.Refused = true
	}
	if len(c.Candidates) == 0 {
		return
	}
	candidate := c.Candidates[0]
	if candidate.FinishReason != "" {
		r.finish = candidate.FinishReason
	}
	if candidate.Content == nil {
		return
	}
	for _, p := range candidate.Content.Parts {
		r.part(p)
	}
}

func (r *reader) part(p *genai.Part) {
	switch {
	case p.FunctionCall != nil:
		if len(p.ThoughtSignature) > 0 {
			if r.signatures == nil {
				r.signatures = map[string][]byte{}
			}
			r.signatures[strconv.Itoa(r.reply.Calls)] = p.ThoughtSignature
		}
		input := ""
		if p.FunctionCall.Args != nil {
			raw, err := json.Marshal(p.FunctionCall.Args, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
			if err != nil {
				raw = []byte("?") // the model is told that it is no object
			}
			input = string(raw)
		}
		r.reply.Call(p.FunctionCall.ID, p.FunctionCall.Name, input)
	case p.Thought && p.Text != "":
		r.reply.Yield(think.Delta{Thought: p.Text})
	case p.Text != "":
		quoted, _ := jsontext.AppendQuote(nil, p.Text)
		r.reply.Say(topics.Raw(quoted))
	}
}

// tokensOf returns the token counts of a response. Cached tokens are part of the prompt's; those of thoughts are not part
// of the candidates'.
func tokensOf(u *genai.GenerateContentResponseUsageMetadata) think.Tokens {
	prompt := int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount)
	cached := int64(u.CachedContentTokenCount)
	return think.Tokens{
		Input: max(prompt-cached, 0), CacheRead: cached,
		Output: int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
	}
}

// end ends the reply when its stream has ended.
func (r *reader) end() error {
	if r.finish == "" && !r.reply.Refused {
		return think.ErrResponse
	}
	if state, err := json.Marshal(r.signatures, json.Deterministic(true)); err == nil && r.signatures != nil {
		r.client.State(r.reply, topics.Raw(state))
	}
	return r.reply.End(string(r.finish))
}
