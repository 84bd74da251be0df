package think

import (
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
	model  ModelLimit
	limits []Limit
}

// defaultTimeout is the timeout of a record without a deadline.
const defaultTimeout = 10 * time.Minute

// WithGroup sets the name of the share group or consumer group (default "{agent}-think-consumer", the group of FlightDeck's
// model workers). It must not be empty.
func WithGroup(group string) Option { return func(r *rules) { r.SetGroup(group) } }

// WithConcurrency sets how many calls of the model run at a time (default 16, at least 1).
func WithConcurrency(steps int) Option {
	return func(r *rules) { r.Concurrency = r.AtLeastOne("WithConcurrency", steps) }
}

// WithWindow sets how many steps of a partition a consumer group may read from the first one that is not settled (default
// 1000, at least 1). At most this many steps, and at most four times WithConcurrency, wait for a limit in this worker (see
// WithModelLimit).
func WithWindow(steps int) Option {
	return func(r *rules) { r.Window = r.AtLeastOne("WithWindow", steps) }
}

// WithTimeout sets how long after the timestamp of its record a step may be answered (at least 1 ms). By default, a step
// has the deadline of its turn, which the turn sends in the header turntable.deadline, or 10 minutes without that header (a
// step of another pipeline). If both are set, the earlier deadline applies. A step that is already too old fails without a
// call of the model.
func WithTimeout(d time.Duration) Option { return func(r *rules) { r.SetTimeout(d) } }

// WithRetry sets how a step's model is called again after a failure. Zero fields have the defaults of worker.RetryPolicy:
// at most 5 calls, with waits from 500 ms to 30 s, of which a fifth is random. If Retryable is nil, an Unavailable is
// retried. The wait is at least Unavailable.After. A model is not called again if it panicked or answered too late, or if
// the wait does not end before the step's deadline; the step then fails with the model's error.
//
// The attempts of earlier processes count: in a consumer group the failed calls, in a share group the deliveries of the
// step. A step that waits for a retry does not count toward WithConcurrency, and each attempt needs the limits again.
func WithRetry(p worker.RetryPolicy) Option {
	return func(r *rules) { r.SetRetry(p, transient) }
}

// WithDrain sets how long calls of the model may keep running after the worker stops (default 10 seconds). It must be
// positive. Then they are interrupted, and the model is called again after the redelivery.
func WithDrain(d time.Duration) Option { return func(r *rules) { r.SetDrain(d) } }

// WithRemembered limits the age, number and total bytes of the records that are kept in memory and published again when
// their step is repeated (default 24 hours, 10,000 and 64 MiB). All bounds must be positive. The oldest records are evicted
// first; a record larger than bytes is not kept. For a repeat whose record is no longer kept, the model is called again.
func WithRemembered(age time.Duration, steps int, bytes int64) Option {
	return func(r *rules) { r.SetRemembered(responder.Bounds{Age: age, Count: steps, Bytes: bytes}) }
}

// WithClock sets the clock for deadlines and timestamps (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option { return func(r *rules) { r.SetClock(c) } }

// WithLogger sets the logger (default: none). The content of conversations is not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option { return func(r *rules) { r.SetLogger(l) } }

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithInstanceID. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.Runtime = append(r.Runtime, opts...) }
}
