package updater

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Option configures New.
type Option func(*rules)

type rules struct {
	responder.Settings
	limit   int
	metrics Metrics
}

const (
	// defaultTimeout is the timeout of a snapshot without a deadline: the time for which the group waits for a memory.
	defaultTimeout = 30 * time.Minute
	// defaultConcurrency is small, because no one waits for a memory, and the calls share the provider's limits with the turns.
	defaultConcurrency = 4
	defaultLimit       = 64 << 10
)

// transient reports whether an error says that a later call may succeed.
func transient(err error) bool {
	var later interface{ RetryAfter() time.Duration }
	return errors.As(err, &later)
}

// WithGroup sets the name of the share group or consumer group (default "{agent}-memoir-updater"). It must not be empty.
func WithGroup(group string) Option { return func(r *rules) { r.SetGroup(group) } }

// WithConcurrency sets how many calls of the updater run at a time (default 4, at least 1).
func WithConcurrency(calls int) Option {
	return func(r *rules) { r.Concurrency = r.AtLeastOne("WithConcurrency", calls) }
}

// WithTimeout sets how long after the timestamp of its record a snapshot may be answered (at least 1 ms). By default, it has
// the deadline in the header turntable.deadline, or 30 minutes without that header. If both are set, the earlier deadline
// applies. A snapshot that is already too old goes to memoir-dlq without a call.
func WithTimeout(d time.Duration) Option { return func(r *rules) { r.SetTimeout(d) } }

// WithRetry sets how the updater is called again after a failure. Zero fields have the defaults of worker.RetryPolicy: at most
// 5 calls, with waits from 500 ms to 30 s, of which a fifth is random. If Retryable is nil, an error with a method
// RetryAfter() time.Duration is retried, and the wait is at least that long. The updater is not called again if it panicked
// or answered too late, or if the wait does not end before the deadline.
func WithRetry(p worker.RetryPolicy) Option {
	return func(r *rules) { r.SetRetry(p, transient) }
}

// WithLimit sets the longest memory in bytes (default 64 KiB, at least 1). It must not exceed that of the group of the
// memories (memoir.WithLimit), which would refuse a longer one.
func WithLimit(bytes int) Option {
	return func(r *rules) { r.limit = r.AtLeastOne("WithLimit", bytes) }
}

// WithRemembered limits the age, number and total bytes of the records that are kept in memory and published again when
// their snapshot is repeated (default 24 hours, 10,000 and 64 MiB). All bounds must be positive. The oldest records are
// evicted first; a record larger than bytes is not kept. For a repeat whose record is no longer kept, the updater is called
// again.
func WithRemembered(age time.Duration, snapshots int, bytes int64) Option {
	return func(r *rules) { r.SetRemembered(responder.Bounds{Age: age, Count: snapshots, Bytes: bytes}) }
}

// WithClock sets the clock for deadlines (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option { return func(r *rules) { r.SetClock(c) } }

// WithLogger sets the logger (default: none). Neither conversations nor memories are logged. It must not be nil.
func WithLogger(l *zap.Logger) Option { return func(r *rules) { r.SetLogger(l) } }

// WithMetrics sets functions that are told what the calls used (default: none).
func WithMetrics(m Metrics) Option { return func(r *rules) { r.metrics = m } }

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithGrace. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.Runtime = append(r.Runtime, opts...) }
}
