package sink

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// Option changes what New makes.
type Option func(*rules)

type rules struct {
	group       string
	name        string
	transports  map[string]Transport
	concurrency int
	route       int
	window      int
	drain       time.Duration
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 256
	defaultRoute       = 32
	defaultWindow      = 10_000
	defaultDrain       = 10 * time.Second
	// deferring is how many records are handled besides those that are attempted: they are answered at once.
	deferring = 32
)

func (r *rules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithTransport sets the transport of a kind of route (topics.KindHTTP, ...). Deliveries of a kind without one are
// refused.
func WithTransport(kind string, t Transport) Option {
	return func(r *rules) {
		if kind == "" || t == nil {
			r.refuse("WithTransport: no kind or no transport")
		}
		r.transports[kind] = t
	}
}

// WithConcurrency sets how many attempts a sink makes at a time (default 256).
func WithConcurrency(attempts int) Option {
	return func(r *rules) {
		if attempts < 1 {
			r.refuse("WithConcurrency: %d, want at least 1", attempts)
		}
		r.concurrency = attempts
	}
}

// WithRouteLimit sets how many attempts a sink makes at a time on one route (default 32).
func WithRouteLimit(attempts int) Option {
	return func(r *rules) {
		if attempts < 1 {
			r.refuse("WithRouteLimit: %d, want at least 1", attempts)
		}
		r.route = attempts
	}
}

// WithWindow sets how far reading may be ahead of the first attempt of a partition that has no receipt, in records
// (default 10,000): what a crash can repeat.
func WithWindow(records int) Option {
	return func(r *rules) {
		if records < 1 {
			r.refuse("WithWindow: %d, want at least 1", records)
		}
		r.window = records
	}
}

// WithDrain sets how long attempts may go on when the sink stops or a partition is taken away (default 10 s, at most
// 18 s); those that take longer are interrupted and tried again.
func WithDrain(d time.Duration) Option {
	return func(r *rules) {
		if d < time.Millisecond {
			r.refuse("WithDrain: %v, want 1ms or more", d)
		}
		r.drain = d
	}
}

// WithGroup names the consumer group (default "{agent}-delivery-sink").
func WithGroup(group string) Option {
	return func(r *rules) {
		if group == "" {
			r.refuse("WithGroup: empty name")
		}
		r.group = group
	}
}

// WithName names this sink in its receipts (default: host name and process id). Of the sinks of an agent each has its
// own.
func WithName(name string) Option {
	return func(r *rules) {
		if name == "" {
			r.refuse("WithName: empty name")
		}
		r.name = name
	}
}

// WithClock sets the clock that leases are judged by (default: the system's). It should agree with the delivery
// processor's to a few seconds.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.refuse("WithClock: nil")
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). No delivery's body, token or address is logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.refuse("WithLogger: nil")
		}
		r.logger = l
	}
}
