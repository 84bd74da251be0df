package think

import (
	"context"
	"iter"
	"slices"
	"strings"
)

// Streamer is a model that yields its reply in pieces. Stream makes a Model of it that also publishes the pieces.
type Streamer interface {
	// Stream answers a step. The rules of Model.Think apply. The sequence ends after the first error. If the caller stops
	// early, Stream releases its resources and returns.
	Stream(ctx context.Context, step Step) iter.Seq2[Delta, error]
}

// ToolUser is a model that can be given tools after it was made. The models of the adapters for providers are ToolUsers.
type ToolUser interface {
	Model
	// WithTools returns the model with more tools than it has. The model itself does not change. The error wraps ErrSettings.
	WithTools(tools ...Tool) (Model, error)
}

// StreamFunc adapts a function to Streamer, and to a Model that joins the pieces.
type StreamFunc func(ctx context.Context, step Step) iter.Seq2[Delta, error]

// Stream implements Streamer.
func (f StreamFunc) Stream(ctx context.Context, step Step) iter.Seq2[Delta, error] {
	return f(ctx, step)
}

// Think implements Model.
func (f StreamFunc) Think(ctx context.Context, step Step) (Reply, error) {
	r, _, err := Collect(f(ctx, step))
	return r, err
}

// Delta is a piece of a reply. If several fields are set, they apply in the order of their declaration.
type Delta struct {
	// Thought is a piece of the model's reasoning. It is published, but not part of the reply.
	Thought string
	// Text is a piece of a text. The pieces of one block are joined.
	Text string
	// EndBlock ends the current block of text or reasoning. A change between the two and a call end it too.
	EndBlock bool
	// Call is a tool call with its complete input.
	Call *Call
	// State replaces the state of the reply. It is not published.
	State *State
	// Usage replaces the token counts and the cost of the reply.
	Usage *Usage
	// Stop is the reason why the model stopped, such as "max_tokens". Without one it is "tool_use" for a reply with calls,
	// otherwise "end_turn".
	Stop string
}

// Usage is what a reply used.
type Usage struct {
	// InputTokens are all input tokens, whether a cache was used for them or not.
	InputTokens, OutputTokens int64
	// Cost is in dollars; nil if unknown.
	Cost *float64
}

// Collect joins the pieces that a model yields to a reply, and returns it with the reason why the model stopped. With an
// error it returns the tokens and the cost so far.
func Collect(deltas iter.Seq2[Delta, error]) (r Reply, stop string, err error) {
	var c collector
	for d, err := range deltas {
		if err != nil {
			return Reply{}.with(c.reply().usage()), "", err
		}
		c.add(d)
	}
	return c.reply(), c.stop(), nil
}

// collector joins deltas to a reply.
type collector struct {
	blocks []Block
	text   strings.Builder // of the open block
	state  *State
	usage  *Usage
	reason string
}

func (c *collector) add(d Delta) {
	if d.Thought != "" {
		c.endBlock()
	}
	c.text.WriteString(d.Text)
	if d.EndBlock || d.Call != nil {
		c.endBlock()
	}
	if d.Call != nil {
		c.blocks = append(c.blocks, Block{Call: d.Call})
	}
	if d.State != nil {
		c.state = d.State
	}
	if d.Usage != nil {
		c.usage = d.Usage
	}
	if d.Stop != "" {
		c.reason = d.Stop
	}
}

func (c *collector) endBlock() {
	if c.text.Len() > 0 {
		c.blocks = append(c.blocks, Block{Text: c.text.String()})
		c.text.Reset()
	}
}

// reply returns what was added so far.
func (c *collector) reply() Reply {
	c.endBlock()
	r := Reply{Blocks: c.blocks, State: c.state}
	if c.usage != nil {
		r.InputTokens, r.OutputTokens, r.Cost = c.usage.InputTokens, c.usage.OutputTokens, c.usage.Cost
	}
	return r
}

// stop returns why the model stopped.
func (c *collector) stop() string {
	switch {
	case c.reason != "":
		return c.reason
	case slices.ContainsFunc(c.blocks, func(b Block) bool { return b.Call != nil }):
		return "tool_use"
	default:
		return "end_turn"
	}
}
