package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid configuration.
var ErrConfig = errors.New("worker: bad configuration")

// Option configures New, which returns an error for every invalid value.
type Option func(*rules)

type rules struct {
	group       string
	topics      []string
	concurrency int
	mode        Mode
	lock        time.Duration
	handover    time.Duration
	readAhead   int
	ordered     bool
	instance    string
	grace       time.Duration
	timeout     time.Duration
	retry       RetryPolicy
	deadLetter  func(ctx context.Context, r Record, reason error) error
	drop        bool // instead of deadLetter
	limits      []Limit[Record]
	limiter     *Limiter
	waiting     int // negative: not set
	clock       processors.Clock
	logger      *zap.Logger
	errs        []error
}

const (
	defaultConcurrency = 16
	defaultLock        = 30 * time.Second
	defaultHandover    = time.Minute
	defaultReadAhead   = 1000
	defaultGrace       = 10 * time.Second
	// defaultWaiting is how many records may wait for each slot of a worker with limits.
	defaultWaiting = 4
)

func newRules(group string, topics []string, handle Handler, opts []Option) rules {
	r := rules{
		group: group, topics: slices.Clone(topics), concurrency: defaultConcurrency, lock: defaultLock,
		handover: defaultHandover, readAhead: defaultReadAhead, grace: defaultGrace, waiting: -1, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	r.retry = r.retry.withDefaults()
	if err := r.retry.Invalid(); err != nil {
		r.invalid("WithRetry: %w", err)
	}
	if r.waiting < 0 {
		r.waiting = 0
		if len(r.limits) > 0 {
			r.waiting = defaultWaiting * r.concurrency
		}
	}
	if len(r.limits) > 0 {
		all := Limit[Record]{Name: "worker " + group, Concurrency: r.concurrency}
		r.limits = append([]Limit[Record]{all}, r.limits...)
		if r.limiter == nil {
			r.limiter = NewLimiterAt(r.clock)
		}
	}
	if group == "" {
		r.invalid("the group is empty")
	}
	if len(topics) == 0 || slices.Contains(topics, "") {
		r.invalid("no topics, or an empty topic name")
	}
	if handle == nil {
		r.invalid("no handler")
	}
	if r.deadLetter == nil && !r.drop {
		r.invalid("neither WithDeadLetter nor WithDrop: say what is done with a record that ends without success")
	}
	if r.mode == ShareGroup && (r.ordered || r.instance != "") {
		r.invalid("WithOrdered and WithInstanceID need consumer groups: share groups have neither order nor static members")
	}
	return r
}

func (r *rules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// positive returns an option that sets a duration, which must be positive.
func positive(name string, d time.Duration, set func(*rules)) Option {
	return func(r *rules) {
		if d <= 0 {
			r.invalid("%s: %s, want a positive time", name, d)
			return
		}
		set(r)
	}
}

// atLeastOne returns an option that sets a number, which must be at least 1.
func atLeastOne(name string, n int, set func(*rules)) Option {
	return func(r *rules) {
		if n < 1 {
			r.invalid("%s: %d, want at least 1", name, n)
			return
		}
		set(r)
	}
}

// WithConcurrency sets how many records are handled at the same time (default 16, at least 1).
func WithConcurrency(n int) Option {
	return atLeastOne("WithConcurrency", n, func(r *rules) { r.concurrency = n })
}

// WithMode sets how the worker gets its records (default Auto). See Mode.
func WithMode(m Mode) Option {
	return func(r *rules) {
		if !slices.Contains([]Mode{Auto, ShareGroup, ConsumerGroup}, m) {
			r.invalid("WithMode: %d is not a mode", int(m))
		}
		r.mode = m
	}
}

// WithLock sets how long after a worker hangs or is disconnected the broker of a share group delivers its records to others
// (default 30 s). The worker renews the lock while a call runs, so calls may take longer. Brokers allow 15 to 60 s by
// default. No effect on consumer groups.
func WithLock(d time.Duration) Option { return positive("WithLock", d, func(r *rules) { r.lock = d }) }

// WithHandover sets how long a running call of a consumer group may continue after its partition has moved to another
// worker (default 1 minute, more than 0). Then its context ends with ErrLost. No effect on share groups, where no partition
// moves.
func WithHandover(d time.Duration) Option {
	return positive("WithHandover", d, func(r *rules) { r.handover = d })
}

// WithReadAhead sets how many records of a partition a consumer group may read from the first one that is not settled
// (default 1000, at least 1). No effect on share groups.
func WithReadAhead(records int) Option {
	return atLeastOne("WithReadAhead", records, func(r *rules) { r.readAhead = records })
}

// WithOrdered handles records of a partition with the same key one after another, in the order of their offsets. Records
// without a key are not ordered. It needs a consumer group: with Auto, the worker uses one.
func WithOrdered() Option { return func(r *rules) { r.ordered = true } }

// WithInstanceID makes the worker a static member (group.instance.id): a restart within the session timeout causes no
// rebalance. The ID must be unique in the group. It needs a consumer group: with Auto, the worker uses one.
func WithInstanceID(id string) Option {
	return func(r *rules) {
		if id == "" {
			r.invalid("WithInstanceID: empty ID")
		}
		r.instance = id
	}
}

// WithGrace sets how long running calls may continue when the worker stops (default 10 s, more than 0). Then their contexts
// end with ErrStopping and their records are redelivered.
func WithGrace(d time.Duration) Option {
	return positive("WithGrace", d, func(r *rules) { r.grace = d })
}

// WithTimeout sets how long a call of the handler may take (default: no limit; more than 0). Then its context ends with
// context.DeadlineExceeded, which counts as a failure.
func WithTimeout(d time.Duration) Option {
	return positive("WithTimeout", d, func(r *rules) { r.timeout = d })
}

// WithRetry sets the retry policy. Zero fields have the defaults that are documented with them.
func WithRetry(p RetryPolicy) Option { return func(r *rules) { r.retry = p } }

// WithDeadLetter sets the function for a record that ends without success: its attempts failed, or the broker delivers it
// for the last time. reason is the last failure or wraps ErrDeliveries. If write returns an error, it is called again with
// backoff until it succeeds; then the record is settled. A worker needs either this option or WithDrop.
func WithDeadLetter(write func(ctx context.Context, r Record, reason error) error) Option {
	return func(r *rules) {
		if write == nil {
			r.invalid("WithDeadLetter: nil")
			return
		}
		r.deadLetter, r.drop = write, false
	}
}

// WithDrop drops a record that ends without success and logs its topic, partition and offset. Use it for records whose loss
// does not matter; otherwise use WithDeadLetter. If both options are given, the last one applies.
func WithDrop() Option {
	return func(r *rules) { r.deadLetter, r.drop = nil, true }
}

// WithLimits bounds the calls of the handler by keys of their records, for example by tenant (default: WithConcurrency is
// the only bound). A record whose limits do not admit it waits outside of the slots (WithWaiting), so that records with
// other keys can be handled. Records with the same Kafka key are a session; sessions take turns, see Limiter. Each retry
// needs the limits again. Further limits are added to those of earlier options.
func WithLimits(limits ...Limit[Record]) Option {
	return func(r *rules) {
		for _, l := range limits {
			if err := l.Invalid(); err != nil {
				r.errs = append(r.errs, fmt.Errorf("WithLimits: %w", err))
			}
		}
		r.limits = append(r.limits, limits...)
	}
}

// WithLimiter sets the Limiter of WithLimits, which workers of one process can share (default: one of its own).
func WithLimiter(l *Limiter) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLimiter: nil")
			return
		}
		r.limiter = l
	}
}

// WithWaiting sets how many records may wait for a limit or a retry, in addition to those in slots (default 0; with
// WithLimits four times WithConcurrency; not negative). Without WithLimits, use it for handlers that call Enter. Such a
// handler is called for more than WithConcurrency records, so it must bound the calls that it makes. The worker holds the
// records in memory. A share group acquires such a record only while a slot is free, or while one session occupies more
// than half of the slots; a consumer group reads them up to WithReadAhead. If that many records wait, for example for one
// tool that hangs, records behind them wait too.
func WithWaiting(records int) Option {
	return func(r *rules) {
		if records < 0 {
			r.invalid("WithWaiting: %d, want at least 0", records)
			return
		}
		r.waiting = records
	}
}

// WithClock sets the clock of retries, timeouts and ages (default: the system clock). Locks and sessions of Kafka are
// measured by the system clock.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.invalid("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). Values of records are not logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
