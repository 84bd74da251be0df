package voice

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// maxHeard is the longest transcript of an utterance in bytes.
const maxHeard = 16 << 10

// Caller is the person of a call.
type Caller struct {
	// ID is what the telephony platform knows of the person, such as a number. It is required. A number can be forged.
	ID string
	// Name is shown to the agent. It may be empty.
	Name string
}

// Utterance is what a transcriber understood.
type Utterance struct {
	// ID is different for each utterance of a call. It is required: repeats are recognised by it.
	ID   string
	Text string
	// At is when it was spoken, zero if that is not known.
	At time.Time
}

// Call is an open call. Its methods are safe for concurrent use.
type Call struct {
	calls  *Calls
	id     string
	caller Caller
	player Player
	ctx    context.Context // ends with the call
	stop   context.CancelFunc
	// hearing and speaking are taken by who passes on an utterance and who plays.
	hearing, speaking chan struct{}
	played            []string // the keys of the last chunks; whoever is speaking may use it
}

// maxPlayed is how many chunks a call remembers, so as not to play them twice.
const maxPlayed = 64

// Begin opens a call, to which answers can be sent until End. The error wraps ErrCall if a value is unusable, the ID is in use or
// there are too many calls, and ErrEnded after Close.
func (c *Calls) Begin(id string, caller Caller, p Player) (*Call, error) {
	if p == nil || caller.ID == "" {
		return nil, fmt.Errorf("%w: a call needs a Player and the ID of its caller", ErrCall)
	}
	call := &Call{
		calls: c, id: id, caller: caller, player: p, hearing: make(chan struct{}, 1), speaking: make(chan struct{}, 1),
	}
	if err := call.origin("").Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCall, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, ErrEnded
	case c.open[id] != nil:
		return nil, fmt.Errorf("%w: the ID of the call is in use", ErrCall)
	case len(c.open) >= c.config.MaxCalls:
		return nil, fmt.Errorf("%w: %d calls are open, which is the limit", ErrCall, len(c.open))
	}
	call.ctx, call.stop = context.WithCancel(context.Background())
	c.open[id] = call
	return call, nil
}

func (c *Call) origin(utterance string) topics.Origin {
	return topics.Origin{
		Channel: Channel, Account: c.calls.config.Account, Recipient: c.id, MessageID: utterance, User: c.caller.ID, UserName: c.caller.Name,
		Proof: topics.ProofNone,
	}
}

// End closes the call. When it returns, nothing is played any more, and what was being received is cancelled. Further calls of End
// have no effect.
func (c *Call) End() {
	c.calls.mu.Lock()
	if c.calls.open[c.id] == c {
		delete(c.calls.open, c.id)
	}
	c.calls.mu.Unlock()
	c.stop()
	c.speaking <- struct{}{} // whoever plays has ended
	<-c.speaking
}

// Heard passes an utterance to the Receiver and returns its error; after one, pass the same utterance again. Utterances are passed on
// one after the other. One without text has no effect. The error wraps ErrEnded if the call has ended, and ErrCall if the utterance
// has no ID or more than 16 KiB.
func (c *Call) Heard(ctx context.Context, u Utterance) error {
	heard := strings.TrimLeftFunc(strings.TrimSpace(u.Text), func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	if heard == "" {
		return nil
	}
	in := adapter.Inbound{
		Event: digests.Hex(c.id, u.ID), Origin: c.origin(u.ID), Text: strings.ToValidUTF8(heard, "\uFFFD"), Mentioned: true, At: u.At,
	}
	if u.ID == "" || len(heard) > maxHeard || in.Origin.Check() != nil {
		return fmt.Errorf("%w: an utterance needs an ID and at most %d bytes", ErrCall, maxHeard)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if c.ctx.Err() != nil {
		return ErrEnded
	}
	select {
	case c.hearing <- struct{}{}:
	case <-ctx.Done():
		return c.orEnded(ctx.Err())
	}
	defer func() { <-c.hearing }()
	if err := c.calls.receiver.Receive(ctx, in); err != nil {
		return c.orEnded(err)
	}
	return nil
}

// orEnded adds ErrEnded to an error if the call has ended.
func (c *Call) orEnded(err error) error {
	if c.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return err
}
