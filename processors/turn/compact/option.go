package compact

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Option configures New.
type Option func(*rules)

type rules struct {
	group       string
	concurrency int
	timeout     limits.Timeout
	runtime     []worker.Option
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 16
	defaultTimeout     = 10 * time.Minute
)

func (r *rules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithGroup sets the name of the share group or consumer group (default "{agent}-compactor"). It must not be empty.
func WithGroup(group string) Option {
	return func(r *rules) {
		if group == "" {
			r.invalid("WithGroup: empty name")
		}
		r.group = group
	}
}

// WithConcurrency sets how many calls of the compactor run at a time (default 16, at least 1).
func WithConcurrency(calls int) Option {
	return func(r *rules) {
		if calls < 1 {
			r.invalid("WithConcurrency: %d, want at least 1", calls)
		}
		r.concurrency = calls
	}
}

// WithTimeout sets how long after the timestamp of its record a request may be answered (at least 1 ms). By default, a
// request has the deadline of its turn, which the turn sends in the header turntable.deadline, or 10 minutes without that
// header. If both are set, the earlier deadline applies. A request that is already too old gets an error without a call.
func WithTimeout(d time.Duration) Option {
	return func(r *rules) {
		if d < time.Millisecond {
			r.invalid("WithTimeout: %s, want at least a millisecond", d)
		}
		r.timeout = limits.Timeout{After: d, Chosen: true}
	}
}

// WithClock sets the clock for deadlines and timestamps (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.invalid("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). The content of conversations is not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLogger: nil")
			return
		}
		r.logger = l
	}
}

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithGrace. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.runtime = append(r.runtime, opts...) }
}
