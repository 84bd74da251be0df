package channel

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// ErrConfig is wrapped by the errors of NewBridge and NewTransport, which say what is wrong.
var ErrConfig = errors.New("channel: invalid configuration")

// BridgeConfig configures NewBridge. Fields that are zero have their defaults.
type BridgeConfig struct {
	// MaxText is the longest text of a message in bytes (default 64 KiB). A longer one is answered with a text that says so.
	MaxText int
	// People is of how many people rate limits are remembered (default 10,000). Those who were quiet for longest are forgotten first.
	People int
	// RecentEvents is how many events are remembered whose records are written (default 10,000).
	RecentEvents int
	// Status is what /status says beside agent, channel and session (default: nothing).
	Status Status
	// Metrics are callbacks (default: none).
	Metrics Metrics
	// Clock is that of rate limits and timestamps (default: the system's).
	Clock processors.Clock
	// Logger logs (default: nothing). Texts, names and IDs of people are not logged.
	Logger *zap.Logger
}

// Status describes a session for /status, in a few lines. It may block for up to 5 seconds, and at most half of the time in which
// the platform wants its answer. After an error, /status says that the state is unknown.
type Status func(ctx context.Context, agent, session string) (string, error)

// Metrics are callbacks for events. They are called from several goroutines and must not block. Any may be nil.
type Metrics struct {
	// Received is called for each event that was handled. what is an action of decide, Repeat or Invalid; reason is that of
	// Refuse.
	Received func(channel, account string, what Action, reason Reason)
}

// What happened to an event, beside the actions of decide.
const (
	// Repeat: the records of the event were written before.
	Repeat Action = "repeat"
	// Invalid: the event has no ID or no usable origin. It is dropped, and a line is logged.
	Invalid Action = "invalid"
)

// complete fills the fields that are zero, and checks the others.
func (c *BridgeConfig) complete(check *bounds.Check) {
	bounds.AtLeast(check, "MaxText", &c.MaxText, 64<<10, 1)
	bounds.AtLeast(check, "People", &c.People, 10_000, 1)
	bounds.AtLeast(check, "RecentEvents", &c.RecentEvents, 10_000, 1)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}
