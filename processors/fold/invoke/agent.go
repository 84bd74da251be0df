package invoke

import (
	"context"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// Agent runs turns. Its methods are called from several goroutines.
type Agent interface {
	// Invoke begins a turn. An error is answered with its status (Error) before anything was streamed. ctx ends when the
	// client has gone, or was answered; what becomes of the turn then is the agent's to say.
	Invoke(ctx context.Context, r Request) (Stream, error)
}

// AgentFunc is an Agent.
type AgentFunc func(ctx context.Context, r Request) (Stream, error)

// Invoke implements Agent.
func (f AgentFunc) Invoke(ctx context.Context, r Request) (Stream, error) { return f(ctx, r) }

// Stream is the events of a turn, of one attempt at it. One goroutine uses it.
type Stream interface {
	// Next waits for the next event. After the last one of a turn that came to its end it returns io.EOF, and End says
	// how; *Superseded says that what follows is another attempt at the turn; any other error ends the turn as failed:
	// its text is told if it is an *Error. Next returns when ctx ends.
	Next(ctx context.Context) (Item, error)
	// End is how the turn ended; valid after io.EOF. A stop reason that differs from that of the last done event is
	// streamed as one more done. State Failed or Expired, or an Error, make the turn a failed one.
	End() fold.End
	// Close gives up what the stream holds. It is called once, after the last Next.
	Close() error
}

// Named is a Stream that knows its turn's id before its first event.
type Named interface{ TurnID() string }

// Item is an event and where it stands.
type Item struct {
	// ID is zero in streams that do not number their events; the door numbers them.
	ID    EventID
	Event fold.Event

	partial bool // another event with the same id follows
}

// shown is the id that the event's frame has: whoever has seen it has all up to there.
func (i Item) shown() EventID {
	if i.partial {
		return EventID{}
	}
	return i.ID
}

// Resumer is an Agent whose turns can be read again.
type Resumer interface {
	Agent
	// Resume is a turn of the request's session, running or done, from the first event of its attempt on; what the
	// client has is left out by the door. It never begins a turn. ErrGone says that there is no such turn any more, or that
	// its first events, or events up to last, can no longer be read.
	Resume(ctx context.Context, r Request, last EventID) (Stream, error)
}

// Shape is what an agent can answer with.
type Shape uint8

// The shapes.
const (
	// Both: a stream where it is asked for, else a batch.
	Both Shape = iota
	// BatchOnly agents answer with a batch, whatever the stream flag says.
	BatchOnly
	// StreamOnly agents answer with a stream, whatever the stream flag says.
	StreamOnly
)

// Capability is what an agent declares, so that what it cannot do is refused before it runs.
type Capability struct {
	Shape Shape
	// FlagBlind agents know neither trim nor force: both are without effect on them.
	FlagBlind bool
}

// Capable is an Agent that declares what it can do. One that does not has the zero Capability.
type Capable interface{ Capability() Capability }

// Request is what an agent is asked.
type Request struct {
	// SessionID is never empty.
	SessionID string
	// Caller is who asks, where the door authenticates.
	Caller Caller
	// Data is the body's data as it came, nil where there is none; with messages in the Vercel form, these are canonical
	// ones instead.
	Data topics.Raw
	// Body is the whole body as it came, nil for a request without one. It may hold secrets.
	Body topics.Raw
	// IdempotencyKey is the header of that name; empty for none.
	IdempotencyKey string
	Flags          Flags
	Trace          Trace
}

// Flags are those that the agent may look at; all else is the door's. Nil is absent.
type Flags struct {
	Stream      bool
	Trim, Force *bool
}

// Messages are the elements of data.inputs.messages; nil where there are none.
func (r Request) Messages() []topics.Raw { return elementsOf(r.inputs("messages")) }

func (r Request) inputs(name string) topics.Raw { return member(member(r.Data, "inputs"), name) }

// Caller is who makes a request.
type Caller struct {
	// UserID is for the agent; the door does nothing with it.
	UserID string
	// MayUse reports whether the caller may use a session; where not, the answer is 403. Nil: any.
	MayUse func(sessionID string) bool
}
