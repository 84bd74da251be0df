package voice

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the type of this channel: the Channel of origins.
const Channel = "voice"

// MaxText is the longest text that is spoken, in bytes.
const MaxText = 4096

var (
	// ErrConfig is wrapped by the errors of New.
	ErrConfig = errors.New("voice: bad configuration")
	// ErrEnded is wrapped by errors about a call that has ended. A Player returns it for such a call.
	ErrEnded = errors.New("voice: call has ended")
	// ErrCall is wrapped by the errors of Begin and Heard about unusable values.
	ErrCall = errors.New("voice: unusable")
)

// Synthesizer makes speech of text.
type Synthesizer interface {
	// Synthesize returns the audio of a text, in the format that the Players take. The caller closes it, also while it is being
	// read if ctx ends. Synthesize is called concurrently and returns soon after ctx ends. If the error is an *adapter.Failure, it
	// says whether to try again; after others it is tried again. Errors must not quote the text.
	Synthesize(ctx context.Context, text string) (io.ReadCloser, error)
}

// Player plays audio to the person of one call.
type Player interface {
	// Play passes all of the audio on to the call, and returns when the call's media service has it, not when it was heard. It is
	// called once at a time, and returns soon after ctx ends. It returns an error that wraps ErrEnded if the call has ended, and
	// others if nothing of the audio will be heard. It must not call the methods of its Call.
	Play(ctx context.Context, audio []byte) error
}

// Config is the configuration of Calls. Zero limits mean the defaults.
type Config struct {
	// Account is the name of the account: the Account of origins. It and Synthesizer are required.
	Account     string
	Synthesizer Synthesizer
	// Timeout is how long synthesis and playing may take together (default 30 s).
	Timeout time.Duration
	// MaxAudio is the largest audio of a text in bytes (default 10 MiB).
	MaxAudio int64
	// MaxCalls is how many calls may be open (default 1000).
	MaxCalls int
}

// Calls has the open calls of an account. It implements adapter.Adapter and is safe for concurrent use. It starts no goroutines.
type Calls struct {
	config   Config
	receiver adapter.Receiver

	mu     sync.Mutex
	open   map[string]*Call
	closed bool
}

// New returns a registry without calls. The error wraps ErrConfig.
func New(c Config, r adapter.Receiver) (*Calls, error) {
	var check bounds.Check
	if c.Account == "" {
		check.Wrong("Account", "is empty")
	}
	if c.Synthesizer == nil || r == nil {
		check.Wrong("Synthesizer", "or the Receiver is nil")
	}
	bounds.AtLeast(&check, "Timeout", &c.Timeout, 30*time.Second, 1)
	bounds.AtLeast(&check, "MaxAudio", &c.MaxAudio, 10<<20, 1)
	bounds.AtLeast(&check, "MaxCalls", &c.MaxCalls, 1000, 1)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	return &Calls{config: c, receiver: r, open: map[string]*Call{}}, nil
}

// Channel implements adapter.Adapter.
func (*Calls) Channel() string { return Channel }

// Traits implements adapter.Adapter.
func (*Calls) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: MaxText, Unit: text.Bytes}, Spoken: true}
}

// Close ends all calls and refuses new ones.
func (c *Calls) Close() {
	c.mu.Lock()
	c.closed = true
	open := slices.Collect(maps.Values(c.open))
	c.mu.Unlock()
	for _, call := range open {
		call.End()
	}
}

// call returns an open call, nil if it has ended or never began here.
func (c *Calls) call(id string) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}
