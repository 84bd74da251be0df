package gemini

import (
	"github.com/go-json-experiment/json"
	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

// reader translates the chunks of a streamed response.
type reader struct {
	usage   func(think.Tokens) *think.Usage
	id      func(i int) string
	calls   int
	text    bool
	blocked bool
	broken  bool
	finish  genai.FinishReason
}

// chunk translates a chunk. It returns false if yield stopped.
func (r *reader) chunk(c *genai.GenerateContentResponse, yield func(think.Delta) bool) bool {
	if c.UsageMetadata != nil && !yield(think.Delta{Usage: r.usage(tokensOf(c.UsageMetadata))}) {
		return false
	}
	if c.PromptFeedback != nil && c.PromptFeedback.BlockReason != "" {
		r.blocked = true
	}
	if len(c.Candidates) == 0 {
		return true
	}
	candidate := c.Candidates[0]
	if candidate.FinishReason != "" {
		r.finish = candidate.FinishReason
	}
	if candidate.Content == nil {
		return true
	}
	for _, p := range candidate.Content.Parts {
		if d, ok := r.delta(p); ok && !yield(d) {
			return false
		}
	}
	return true
}

// delta translates a part; false if there is nothing to yield.
func (r *reader) delta(p *genai.Part) (think.Delta, bool) {
	switch {
	case p.FunctionCall != nil:
		id := p.FunctionCall.ID
		if id == "" {
			id = r.id(r.calls)
		}
		r.calls++
		input := []byte("{}")
		if p.FunctionCall.Args != nil {
			var err error
			if input, err = json.Marshal(p.FunctionCall.Args, json.Deterministic(true)); err != nil {
				r.broken = true
				return think.Delta{}, false
			}
		}
		return think.Delta{Call: &think.Call{ID: id, Name: p.FunctionCall.Name, Input: input}}, true
	case p.Text == "":
		return think.Delta{}, false
	case p.Thought:
		return think.Delta{Thought: p.Text}, true
	default:
		r.text = true
		return think.Delta{Text: p.Text}, true
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

// refusals are the finish reasons of filters.
var refusals = map[genai.FinishReason]bool{
	genai.FinishReasonSafety: true, genai.FinishReasonRecitation: true, genai.FinishReasonBlocklist: true,
	genai.FinishReasonProhibitedContent: true, genai.FinishReasonSPII: true,
}

// end judges the response when its stream has ended. A text that was cut off at the token limit is still a reply. A
// response with calls is not, because one can be missing.
func (r *reader) end(yield func(think.Delta) bool) error {
	switch {
	case r.blocked, refusals[r.finish]:
		return think.ErrRefused
	case r.broken:
		return think.ErrResponse
	case r.finish == genai.FinishReasonMaxTokens:
		if r.calls > 0 || !r.text {
			return think.ErrTruncated
		}
		yield(think.Delta{Stop: "max_tokens"})
		return nil
	case r.finish == genai.FinishReasonStop:
		return nil
	default: // also a malformed call
		return think.ErrResponse
	}
}
