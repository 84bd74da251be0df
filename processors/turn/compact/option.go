package compact

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
}

// defaultTimeout is the timeout of a record without a deadline.
const defaultTimeout = 10 * time.Minute

// WithGroup sets the name of the share group or consumer group (default "{agent}-compactor"). It must not be empty.
func WithGroup(group string) Option { return func(r *rules) { r.SetGroup(group) } }

// WithConcurrency sets how many calls of the compactor run at a time (default 16, at least 1).
func WithConcurrency(calls int) Option {
	return func(r *rules) { r.Concurrency = r.AtLeastOne("WithConcurrency", calls) }
}

// WithTimeout sets how long after the timestamp of its record a request may be answered (at least 1 ms). By default, a
// request has the deadline of its turn, which the turn sends in the header turntable.deadline, or 10 minutes without that
// header. If both are set, the earlier deadline applies. A request that is already too old gets an error without a call.
func WithTimeout(d time.Duration) Option { return func(r *rules) { r.SetTimeout(d) } }

// WithClock sets the clock for deadlines and timestamps (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option { return func(r *rules) { r.SetClock(c) } }

// WithLogger sets the logger (default: none). The content of conversations is not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option { return func(r *rules) { r.SetLogger(l) } }

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithGrace. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.Runtime = append(r.Runtime, opts...) }
}
