package claude

import (
	"errors"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// Why an answer is none.
var (
	ErrAnswer    = errors.New("claude: answer cannot be read")
	ErrRefused   = errors.New("claude: the model refused to answer")
	ErrPaused    = errors.New("claude: the model paused, which it does for tools of the API's own only")
	ErrTruncated = errors.New("claude: answer is longer than max_tokens")
)

// reply is what an answer says. Text that was cut off at max_tokens is an answer all the same; a call is not, for its
// input would be another one.
func (m *Model) reply(said *anthropic.Message) (think.Reply, error) {
	u := said.Usage
	r := think.Reply{
		InputTokens:  u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens,
		OutputTokens: u.OutputTokens,
		Cost:         m.settings.Prices.cost(u),
	}
	for _, b := range said.Content {
		switch b.Type {
		case "text":
			r.Blocks = append(r.Blocks, think.Block{Text: b.Text})
		case "tool_use":
			r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: b.ID, Name: b.Name, Input: topics.Raw(b.Input)}})
		}
		// There are no others: neither thinking nor tools of the API's own are asked for.
	}
	calls := len(r.Calls()) > 0
	switch said.StopReason {
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

// Prices are dollars for a million tokens.
type Prices struct{ Input, Output float64 }

// What tokens cost that are written to the prompt cache, or read from it, in relation to others.
const (
	cacheWrite = 1.25
	cacheRead  = 0.1
	perMillion = 1e6
)

// cost is what an answer costs, nil without prices.
func (p *Prices) cost(u anthropic.Usage) *float64 {
	if p == nil {
		return nil
	}
	input := float64(u.InputTokens) + cacheWrite*float64(u.CacheCreationInputTokens) +
		cacheRead*float64(u.CacheReadInputTokens)
	cost := (input*p.Input + float64(u.OutputTokens)*p.Output) / perMillion
	return &cost
}
