package bridge

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("bridge: bad configuration")

// Option configures New.
type Option func(*options)

type options struct {
	maxText int
	people  int
	events  int
	status  Status
	metrics Metrics
	clock   processors.Clock
	logger  *zap.Logger
	errs    []error
}

func newOptions(opts []Option) options {
	o := options{maxText: 64 << 10, people: 10_000, events: 10_000, clock: clock.System(), logger: zap.NewNop()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

func positive(name string, n int, set func(*options)) Option {
	return func(o *options) {
		if n < 1 {
			o.invalid("%s: %d, want at least 1", name, n)
		}
		set(o)
	}
}

// WithMaxText sets the longest text of a message in bytes (default 64 KiB, at least 1). A longer one is answered with a text
// that says so.
func WithMaxText(n int) Option { return positive("WithMaxText", n, func(o *options) { o.maxText = n }) }

// WithPeople sets of how many people rate limits are remembered (default 10,000, at least 1). Those who were quiet for
// longest are forgotten first.
func WithPeople(n int) Option { return positive("WithPeople", n, func(o *options) { o.people = n }) }

// WithRecentEvents sets how many events are remembered whose records are written (default 10,000, at least 1).
func WithRecentEvents(n int) Option {
	return positive("WithRecentEvents", n, func(o *options) { o.events = n })
}

// Status describes a session for /status, in a few lines. It may block for up to 5 seconds, and at most half of the time in which
// the platform wants its answer. After an error, /status says that
// the state is unknown.
type Status func(ctx context.Context, agent, session string) (string, error)

// WithStatus sets what /status says beside agent, channel and session (default: nothing).
func WithStatus(s Status) Option { return func(o *options) { o.status = s } }

// Metrics are callbacks for events. They are called from several goroutines and must not block. Any may be nil.
type Metrics struct {
	// Received is called for each event that was handled. what is an action of Decide, Repeat or Invalid; reason is that of
	// Refuse.
	Received func(channel, account string, what Action, reason Reason)
}

// What happened to an event, beside the actions of Decide.
const (
	// Repeat: the records of the event were written before.
	Repeat Action = "repeat"
	// Invalid: the event has no ID or no usable origin. It is dropped, and a line is logged.
	Invalid Action = "invalid"
)

// WithMetrics sets callbacks for metrics. The default is none.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }

// WithClock sets the clock of rate limits and timestamps (default: the system's). It must not be nil.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). Texts, names and IDs of people are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
		}
		o.logger = l
	}
}
