package think

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Model says something in a conversation.
type Model interface {
	// Think answers a step. It is called from several goroutines, and returns soon after ctx ends: at the step's
	// deadline, or when the worker stops or loses the partition; the step is then asked again, by whoever has it.
	//
	// An error ends the turn. Its text goes to think-dlq, to the log and to whoever asked, so it must quote neither the
	// conversation nor a secret. Retries are the model's own affair, within ctx.
	Think(ctx context.Context, step Step) (Reply, error)
}

// Func is a Model that is a function.
type Func func(ctx context.Context, step Step) (Reply, error)

// Think implements Model.
func (f Func) Think(ctx context.Context, step Step) (Reply, error) { return f(ctx, step) }

// Step is what a model is asked.
type Step struct {
	Agent     string
	SessionID string
	UserID    *string
	// Messages are the conversation: the history, without null elements, and the input at its end.
	Messages []topics.Message
	// Memoir is what is known of the user from earlier sessions, "" for nothing.
	Memoir string
	// Cost is what the session cost so far, in dollars; nil at its first step.
	Cost *float64
	// Key names the step, the same whenever it is asked again.
	Key string
	// Deadline is when the turn stops waiting, by WithTimeout.
	Deadline time.Time
}

// Input is the message that the step is about: the user's, or the results of tools (role tool).
func (s Step) Input() topics.Message { return s.Messages[len(s.Messages)-1] }

// Reply is what a model said. Without calls it ends the turn.
type Reply struct {
	// Blocks are texts and calls in the order in which they were said. Texts that are blank are left out.
	Blocks []Block
	// InputTokens and OutputTokens are those of this step.
	InputTokens, OutputTokens int64
	// Cost is that of this step in dollars, nil where it is not known.
	Cost *float64
}

// Block is a text, or where Call is not nil a tool call.
type Block struct {
	Text string
	Call *Call
}

// Call is a tool that the model asks for.
type Call struct {
	// ID is the tool_use_id, which the result will name; unique in the session.
	ID    string
	Name  string
	Input topics.Raw // an object, or nil
}

// Say is a reply that is one text.
func Say(text string) Reply { return Reply{Blocks: []Block{{Text: text}}} }

// Calls are the tools that a reply asks for.
func (r Reply) Calls() []Call {
	var calls []Call
	for _, b := range r.Blocks {
		if b.Call != nil {
			calls = append(calls, *b.Call)
		}
	}
	return calls
}
