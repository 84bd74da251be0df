package think

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Model produces the next reply of a conversation.
type Model interface {
	// Think answers a step. It is called from several goroutines. It must return soon after ctx ends:
	//
	//   - at the step's deadline; the step then fails.
	//   - when its turn ends, for example because the user cancelled it; context.Cause is then ErrTurnEnded. The tokens and
	//     the cost that Think returns with its error are logged.
	//   - when the worker stops or loses the record; the step is then delivered again.
	//
	// After an Unavailable the worker calls Think again (see Config.Retry). Any other error ends the turn. Its text is written
	// to think-dlq and to the log, and sent to the user, so it must quote neither the conversation nor a secret.
	//
	// With an error, Think should return the tokens and the cost that it has used: they are added to those of the step's
	// other calls, and count for the session even if the step fails. See "Cost of failed calls" in the package documentation.
	Think(ctx context.Context, step Step) (Reply, error)
}

// Func adapts a function to Model.
type Func func(ctx context.Context, step Step) (Reply, error)

// Think implements Model.
func (f Func) Think(ctx context.Context, step Step) (Reply, error) { return f(ctx, step) }

// Step is the input of a model call.
type Step struct {
	Agent     string
	SessionID string
	UserID    *string
	// Messages are the conversation: the history, without null elements, and the input at its end.
	Messages []topics.Message
	// Memoir is what is remembered of the user from earlier sessions; empty if there is nothing.
	Memoir string
	// EphemeralPrompt is a further section of the system prompt for the turn of this step only, after Settings.System and
	// Memoir; empty if there is none. Models must not keep it: the next turn does not have it.
	EphemeralPrompt string
	// Cost is the cost of the session so far in dollars; nil at its first step.
	Cost *float64
	// Key identifies the step. It is the same when the step is repeated.
	Key string
	// TurnID and Number say where the events of the step belong: to which turn, and the number of the step in it, from 1. They
	// are empty if the stream of the turn has no place for them, because the worker of its first step wrote no events.
	TurnID string
	Number int64
	// Deadline is when the step fails: the deadline of the turn, or earlier, see Config.Timeout.
	Deadline time.Time
	// Retried reports whether the worker calls the model again for this step if the call fails with err (see Config.Retry). If
	// it is nil, the worker does not retry.
	Retried func(err error) bool
	// Again reports that the worker asks again because the reply was empty. A provider must not answer with a stored reply.
	Again bool

	request topics.Raw // what AgentEvent.Request is in the first event of the turn's first step; nil for none
}

// Input returns the message to answer: the user's, or the results of tools (role tool).
func (s Step) Input() topics.Message { return s.Messages[len(s.Messages)-1] }

// Reply is the reply of a model. A reply without calls ends the turn.
type Reply struct {
	// Blocks are texts and calls in their order. Blank texts are omitted from the response.
	Blocks []Block
	// InputTokens and OutputTokens are the tokens that this step used.
	InputTokens, OutputTokens int64
	// Cost is the cost of this step in dollars; nil if unknown.
	Cost *float64
	// State is what the provider requires back in the next step, such as signed reasoning; nil for none. The turn stores it in
	// the history, with the message of the reply. It is not shown, logged or published as an event. See StateOf.
	State *State

	events string // the value of topics.HeaderEvents, empty if Stream has not published the reply
}

// empty reports whether there is nothing in the reply: no call, and no text that is not blank.
func (r Reply) empty() bool {
	return !slices.ContainsFunc(r.Blocks, func(b Block) bool { return b.Call != nil || strings.TrimSpace(b.Text) != "" })
}

// Block is a tool call if Call is not nil, else a text.
type Block struct {
	Text string
	Call *Call
}

// Call is a tool call that the model requests.
type Call struct {
	// ID is the tool_use_id, by which the result refers to the call. If it is blank, or that of an earlier call of the turn, the
	// worker gives the call another one.
	ID   string
	Name string
	// Input is an object, or nil. If it is neither, the worker makes an object of it, or sets Invalid.
	Input topics.Raw
	// Invalid says what is wrong with the call; empty if nothing is. The tool is not run, and the model gets the text as the
	// call's result.
	Invalid string
}

// Say returns a reply with one text block.
func Say(text string) Reply { return Reply{Blocks: []Block{{Text: text}}} }

// Calls returns the tool calls of the reply, in order.
func (r Reply) Calls() []Call {
	var calls []Call
	for _, b := range r.Blocks {
		if b.Call != nil {
			calls = append(calls, *b.Call)
		}
	}
	return calls
}
