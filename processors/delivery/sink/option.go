package sink

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Option sets a property of the sink that New returns. New returns an error for every invalid value.
type Option func(*rules)

type rules struct {
	peers       bool
	group       string
	name        string
	transports  map[string]Transport
	concurrency int
	perRoute    int
	readAhead   int
	drain       time.Duration
	runtime     []worker.Option
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 256
	defaultPerRoute    = 32
	defaultReadAhead   = 10_000
	defaultDrain       = 10 * time.Second
	defaultPeerDrain   = 25 * time.Second // a platform usually kills a process 30 s after it asked it to stop
	// deferring is how many records are handled concurrently in addition to the attempts. They get a deferred receipt
	// immediately.
	deferring = 32
)

// invalid records an option error, which New returns.
func (r *rules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithTransport sets the transport of a kind of route (topics.KindHTTP, ...). At least one is required. Deliveries of a
// kind without a transport get a refused receipt.
func WithTransport(kind string, t Transport) Option {
	return func(r *rules) {
		if kind == "" || t == nil {
			r.invalid("WithTransport: kind is empty or transport is nil")
		}
		r.transports[kind] = t
	}
}

// WithConcurrency sets how many attempts may be in flight in this sink (default 256, at least 1).
func WithConcurrency(attempts int) Option {
	return func(r *rules) {
		if attempts < 1 {
			r.invalid("WithConcurrency: %d, want at least 1", attempts)
		}
		r.concurrency = attempts
	}
}

// WithRouteLimit sets how many attempts on one route may be in flight in this sink (default 32, at least 1).
func WithRouteLimit(attempts int) Option {
	return func(r *rules) {
		if attempts < 1 {
			r.invalid("WithRouteLimit: %d, want at least 1", attempts)
		}
		r.perRoute = attempts
	}
}

// WithWindow sets how many records of a partition a consumer group may read ahead of the first one without a receipt
// (default 10,000, at least 1). It has no effect on share groups.
func WithWindow(records int) Option {
	return func(r *rules) {
		if records < 1 {
			r.invalid("WithWindow: %d, want at least 1", records)
		}
		r.readAhead = records
	}
}

// WithDrain sets how long attempts may continue after the sink stops (default 10 s, ForPeers: 25 s; at least 1 ms). Attempts that
// take longer are interrupted and retried. The platform must not kill the process earlier.
func WithDrain(d time.Duration) Option {
	return func(r *rules) {
		if d < time.Millisecond {
			r.invalid("WithDrain: %v, want 1ms or more", d)
		}
		r.drain = d
	}
}

// ForPeers makes the sink read {agent}-peer-attempts and write {agent}-peer-receipts: it sends the tasks that the agent
// delegates to other instances. Its default group is "{agent}-peer-sink". If there are peers that are not idempotent, set WithDrain
// to the longest time that their tasks take: a task of theirs that a deployment interrupts ends with outcome_unknown. A program
// that makes both kinds of attempts runs two sinks.
func ForPeers() Option { return func(r *rules) { r.peers = true } }

// WithGroup sets the name of the share group or consumer group (default "{agent}-delivery-sink"; see ForPeers). It must not be
// empty.
func WithGroup(group string) Option {
	return func(r *rules) {
		if group == "" {
			r.invalid("WithGroup: empty name")
		}
		r.group = group
	}
}

// WithName sets the sink's name in its receipts (default: host name and process ID). It must be unique among the sinks of
// an agent, because the delivery group keeps one count of attempts in flight per name.
func WithName(name string) Option {
	return func(r *rules) {
		if name == "" {
			r.invalid("WithName: empty name")
		}
		r.name = name
	}
}

// WithClock sets the clock that is compared with leases (default: the system clock). It should differ from the delivery
// processor's clock by a few seconds at most.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.invalid("WithClock: nil")
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). Bodies, tokens and addresses are never logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLogger: nil")
		}
		r.logger = l
	}
}

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithInstanceID. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.runtime = append(r.runtime, opts...) }
}
