package tools

import (
	"fmt"
	"strings"
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
	tokens      tokens
	leaveOthers bool
	remembered  settled.Bounds
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 16
	defaultWindow      = 1000
	defaultTimeout     = 5 * time.Minute
)

func (r *rules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithGroup names the consumer group (default "{agent}-tool-execution", that of FlightDeck's workers). Workers of one
// group share the calls, so each of them must have all tools; workers with different tools have groups of their own and
// WithOthersLeft.
func WithGroup(group string) Option {
	return func(r *rules) {
		if group == "" {
			r.refuse("WithGroup: empty name")
		}
		r.group = group
	}
}

// WithOthersLeft leaves calls to tools that are not named here to other workers. By default they are answered at once
// with an error, reason unknown_tool.
func WithOthersLeft() Option { return func(r *rules) { r.leaveOthers = true } }

// WithConcurrency sets how many calls of each tool run at a time (default 16).
func WithConcurrency(calls int) Option {
	return func(r *rules) {
		if calls < 1 {
			r.refuse("WithConcurrency: %d, want at least 1", calls)
		}
		r.concurrency = calls
	}
}

// WithWindow sets how many calls are taken at a time, running or waiting for their tool, and how far reading may be
// ahead of the first call of a partition that is not answered (default 1000). A crash can repeat as many.
func WithWindow(calls int) Option {
	return func(r *rules) {
		if calls < 1 {
			r.refuse("WithWindow: %d, want at least 1", calls)
		}
		r.window = calls
	}
}

// WithTimeout sets how long after its record was written a call must be answered (default 5 minutes); it should be the
// turn's tool timeout, or less. A call that is older when its tool could begin is answered with an error, reason
// timeout.
func WithTimeout(d time.Duration) Option {
	return func(r *rules) {
		if d < time.Millisecond {
			r.refuse("WithTimeout: %s, want at least a millisecond", d)
		}
		r.timeout = d
	}
}

// WithDrain sets how long tools may go on when the worker stops or loses a partition (default 10 seconds, at most 18).
func WithDrain(d time.Duration) Option {
	return func(r *rules) {
		if d <= 0 {
			r.refuse("WithDrain: %s, want a positive time", d)
		}
		r.drain = d
	}
}

// WithTokens lets tools mint callback tokens (Call.Token), signed with a secret that the callback door knows, good for
// ttl after the call (FlightDeck's dispatcher gives them 24 hours).
func WithTokens(secret string, ttl time.Duration) Option {
	return func(r *rules) {
		if strings.TrimSpace(secret) == "" || ttl < time.Second {
			r.refuse("WithTokens: no secret, or a time below a second")
		}
		r.tokens = tokens{secret, ttl}
	}
}

// WithRemembered sets for how long, how many, and how many bytes of the records that settled a call are kept in memory, to
// be published again when the call is repeated (default 24 hours, 10,000 and 64 MiB). The oldest are evicted first; a
// record larger than bytes is not kept. A repeat whose record is no longer kept is called again.
func WithRemembered(age time.Duration, calls int, bytes int64) Option {
	return func(r *rules) {
		r.remembered = settled.Bounds{Age: age, Count: calls, Bytes: bytes}
		if !r.remembered.Valid() {
			r.refuse("WithRemembered: %v, %d, %d bytes, want positive bounds", age, calls, bytes)
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

// WithLogger sets the logger (default: none). Inputs and results are not logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.refuse("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
