package think

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/settled"
)

// Option changes what New makes.
type Option func(*rules)

type rules struct {
	group       string
	concurrency int
	window      int
	timeout     time.Duration
	drain       time.Duration // 0: that of processors.Consume
	remembered  settled.Bounds
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 16
	defaultWindow      = 1000
	defaultTimeout     = 10 * time.Minute
)

func (r *rules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithGroup names the consumer group (default "{agent}-think-consumer", that of FlightDeck's model workers).
func WithGroup(group string) Option {
	return func(r *rules) {
		if group == "" {
			r.refuse("WithGroup: empty name")
		}
		r.group = group
	}
}

// WithConcurrency sets how many steps the model is asked at a time (default 16).
func WithConcurrency(steps int) Option {
	return func(r *rules) {
		if steps < 1 {
			r.refuse("WithConcurrency: %d, want at least 1", steps)
		}
		r.concurrency = steps
	}
}

// WithWindow sets how far reading may be ahead of the first step of a partition that is not answered (default 1000). A
// crash can repeat as many.
func WithWindow(steps int) Option {
	return func(r *rules) {
		if steps < 1 {
			r.refuse("WithWindow: %d, want at least 1", steps)
		}
		r.window = steps
	}
}

// WithTimeout sets how long after its record was written a step must be answered (default 10 minutes); it should be the
// turn's think timeout, or less. A step that is older when it could begin fails.
func WithTimeout(d time.Duration) Option {
	return func(r *rules) {
		if d < time.Millisecond {
			r.refuse("WithTimeout: %s, want at least a millisecond", d)
		}
		r.timeout = d
	}
}

// WithDrain sets how long the model may go on when the worker stops or loses a partition (default 10 seconds, at most
// 18).
func WithDrain(d time.Duration) Option {
	return func(r *rules) {
		if d <= 0 {
			r.refuse("WithDrain: %s, want a positive time", d)
		}
		r.drain = d
	}
}

// WithRemembered sets for how long, how many, and how many bytes of the records that settled a step are kept in memory, to
// be published again when the step is repeated (default 24 hours, 10,000 and 64 MiB). The oldest are evicted first; a
// record larger than bytes is not kept. A repeat whose record is no longer kept is asked again.
func WithRemembered(age time.Duration, steps int, bytes int64) Option {
	return func(r *rules) {
		r.remembered = settled.Bounds{Age: age, Count: steps, Bytes: bytes}
		if !r.remembered.Valid() {
			r.refuse("WithRemembered: %v, %d, %d bytes, want positive bounds", age, steps, bytes)
		}
	}
}

// WithClock sets the clock of deadlines and timestamps (default: the system's).
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.refuse("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). Nothing of a conversation is logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.refuse("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
