package claude

import (
	"errors"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// The errors of responses that are not a reply.
var (
	ErrAnswer    = errors.New("claude: response cannot be read")
	ErrRefused   = errors.New("claude: the model refused to answer")
	ErrPaused    = errors.New("claude: the model paused, which it does only for server tools")
	ErrTruncated = errors.New("claude: response was cut off at the token limit")
)

// reply translates a response. A text that was cut off at the token limit is still a reply. A response with tool calls is
// not, because their input may be incomplete.
func (m *Model) reply(response *anthropic.Message) (think.Reply, error) {
	u := response.Usage
	r := think.Reply{
		InputTokens:  u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens,
		OutputTokens: u.OutputTokens,
		Cost:         m.settings.Prices.cost(u),
	}
	for _, b := range response.Content {
		switch b.Type {
		case "text":
			r.Blocks = append(r.Blocks, think.Block{Text: b.Text})
		case "tool_use":
			r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: b.ID, Name: b.Name, Input: topics.Raw(b.Input)}})
		}
		// There are no other types: the request enables neither thinking nor server tools.
	}
	calls := len(r.Calls()) > 0
	switch response.StopReason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return r, nil
	case anthropic.StopReasonToolUse:
		if !calls {
			return think.Reply{}, ErrAnswer
		}
		return r, nil
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		if calls || len(r.Blocks) == 0 {
			return think.Reply{}, ErrTruncated
		}
		return r, nil
	case anthropic.StopReasonRefusal:
		return think.Reply{}, ErrRefused
	case anthropic.StopReasonPauseTurn:
		return think.Reply{}, ErrPaused
	default:
		return think.Reply{}, ErrAnswer
	}
}

// Prices are token prices in dollars per million tokens.
type Prices struct{ Input, Output float64 }

// The prices of tokens that are written to or read from the prompt cache, relative to input tokens.
const (
	cacheWrite = 1.25
	cacheRead  = 0.1
	perMillion = 1e6
)

// cost returns the cost of a response in dollars, nil without prices.
func (p *Prices) cost(u anthropic.Usage) *float64 {
	if p == nil {
		return nil
	}
	input := float64(u.InputTokens) + cacheWrite*float64(u.CacheCreationInputTokens) +
		cacheRead*float64(u.CacheReadInputTokens)
	cost := (input*p.Input + float64(u.OutputTokens)*p.Output) / perMillion
	return &cost
}
