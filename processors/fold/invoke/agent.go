package invoke

import (
	"context"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Agent runs turns. Its methods must be safe for concurrent use.
type Agent interface {
	// Invoke begins a turn. If it returns an *Error, the response has its status; any other error is logged and answered
	// with status 500. ctx is cancelled when the response is complete or the client has disconnected. The agent decides
	// whether the turn then continues.
	Invoke(ctx context.Context, r Request) (Stream, error)
}

// AgentFunc is a function that implements Agent.
type AgentFunc func(ctx context.Context, r Request) (Stream, error)

// Invoke implements Agent.
func (f AgentFunc) Invoke(ctx context.Context, r Request) (Stream, error) { return f(ctx, r) }

// Stream returns the events of a turn. Its methods are not called concurrently.
type Stream interface {
	// Next blocks until the next event, or until ctx is done. After the last event of a turn that has ended it returns
	// io.EOF. *Superseded means that the following events belong to a newer attempt at the turn. Any other error ends the
	// turn as failed; the client receives its text if it is an *Error.
	Next(ctx context.Context) (Item, error)
	// End returns how the turn ended. It is called only after Next has returned io.EOF. If the stop reason differs from
	// that of the last done event, the door adds a done event. The turn has failed if State is Failed or Expired, or if
	// Error is set.
	End() folder.End
	// Close releases the stream's resources. It is called once, after the last Next.
	Close() error
}

// Named is a Stream that knows its turn's id before its first event.
type Named interface{ TurnID() string }

// Item is an event and its position.
type Item struct {
	// ID is zero in streams that do not number their events. The door then numbers them.
	ID    EventID
	Event folder.Event

	partial bool // another event with the same ID follows
}

// shown returns the ID of the event's frame. Only the last event with an ID has one, so that a client that has received
// the ID has all events up to it.
func (i Item) shown() EventID {
	if i.partial {
		return EventID{}
	}
	return i.ID
}

// Resumer is an Agent whose turns can be read again.
type Resumer interface {
	Agent
	// Resume returns a turn of the request's session, running or ended, from the first event of the attempt that last
	// names. The door skips the events up to last. Resume never begins a turn. It returns ErrGone if there is no such
	// turn, or if its first events or the events up to last can no longer be read.
	Resume(ctx context.Context, r Request, last EventID) (Stream, error)
}

// Shape says whether an agent answers with batches, streams or both.
type Shape uint8

// The shapes.
const (
	// Both answers with a stream if the request asks for one, otherwise with a batch.
	Both Shape = iota
	// BatchOnly always answers with a batch and ignores the stream flag.
	BatchOnly
	// StreamOnly always answers with a stream and ignores the stream flag.
	StreamOnly
)

// Capability describes what an agent supports. The door rejects other requests before the agent runs.
type Capability struct {
	Shape Shape
	// FlagBlind agents ignore the flags trim and force.
	FlagBlind bool
}

// Request is a request to an agent.
type Request struct {
	// SessionID is never empty.
	SessionID string
	// Caller is the authenticated caller; zero without Config.Authenticate.
	Caller auth.Caller
	// Data is the body's member data, unchanged; nil if absent. If the messages are in the Vercel form, they are replaced
	// by canonical messages.
	Data topics.Raw
	// Body is the whole body, unchanged; nil for a request without one. It can contain secrets.
	Body topics.Raw
	// IdempotencyKey is the header Idempotency-Key; empty for none.
	IdempotencyKey string
	Flags          Flags
	Trace          Trace

	callerKey string // of the caller's limits
}

// Flags are the request options that are passed to the agent. A nil flag is absent.
type Flags struct {
	Stream      bool
	Trim, Force *bool
}

// Messages returns the elements of data.inputs.messages; nil if there are none.
func (r Request) Messages() []topics.Raw { return elementsOf(r.inputs("messages")) }

func (r Request) inputs(name string) topics.Raw { return member(member(r.Data, "inputs"), name) }
