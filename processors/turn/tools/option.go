package tools

import (
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Option configures NewWorker.
type Option func(*rules)

type rules struct {
	responder.Settings
	ofTool      map[string]int // concurrency of single tools
	limits      []Limit
	tokens      tokens
	leaveOthers bool
}

// defaultTimeout is the timeout of a record without a deadline.
const defaultTimeout = 5 * time.Minute

// WithGroup sets the name of the share group or consumer group (default "{agent}-tool-execution", the group of FlightDeck's
// workers). It must not be empty. Workers of one group share the calls, so each of them must have all tools. Workers with
// different tools need different groups and WithOthersLeft.
func WithGroup(group string) Option { return func(r *rules) { r.SetGroup(group) } }

// WithOthersLeft ignores calls to tools that were not passed to NewWorker, so that other workers can answer them. By default
// they are answered immediately with an error, reason unknown_tool.
func WithOthersLeft() Option { return func(r *rules) { r.leaveOthers = true } }

// WithConcurrency sets how many calls of each tool run at a time (default 16, at least 1).
func WithConcurrency(calls int) Option {
	return func(r *rules) { r.Concurrency = r.AtLeastOne("WithConcurrency", calls) }
}

// WithToolConcurrency sets how many calls of one tool run at a time (default: WithConcurrency; at least 1). The tool must be
// one of those that are passed to NewWorker.
func WithToolConcurrency(name string, calls int) Option {
	return func(r *rules) {
		calls := r.AtLeastOne("WithToolConcurrency: "+name, calls)
		if r.ofTool == nil {
			r.ofTool = map[string]int{}
		}
		r.ofTool[name] = calls
	}
}

// Limit bounds the calls that have the same key, see worker.Limit.
type Limit = worker.Limit[Call]

// WithLimits bounds the calls of all tools by further keys, for example by tenant, or by the service that some tools use
// (default: none). A call that waits delays no call with other keys, and sessions take turns. A call whose deadline passes
// while it waits is answered with an error, reason timeout. Further limits are added to those of earlier options.
func WithLimits(limits ...Limit) Option {
	return func(r *rules) { r.limits = responder.AddLimits(&r.Settings, r.limits, limits) }
}

// WithLimiter sets the limiter, which workers of one process can share (default: one of its own). It must not be nil.
func WithLimiter(l *worker.Limiter) Option { return func(r *rules) { r.SetLimiter(l) } }

// WithWindow sets how many calls may wait for their tool or for another limit, in addition to those that run (default 1000,
// at least 1). They are held in memory. A consumer group reads that many calls of a partition beyond the first one that is
// not settled. From a share group, a worker acquires calls that have to wait only while another of its tools can run a
// call, or while the calls of one session occupy more than half of its slots; other workers get the rest. If this many
// calls wait for a tool that hangs, the calls behind them wait until the waiting calls are answered at their deadlines.
func WithWindow(calls int) Option {
	return func(r *rules) { r.Window = r.AtLeastOne("WithWindow", calls) }
}

// WithTimeout sets how long after the timestamp of its record a call may run (at least 1 ms). By default, a call has the
// deadline of its turn, which the turn sends in the header turntable.deadline, or 5 minutes without that header (a call of
// another pipeline). If both are set, the earlier deadline applies. A call that exceeds its deadline, before or after its
// tool starts, is answered with an error, reason timeout.
func WithTimeout(d time.Duration) Option { return func(r *rules) { r.SetTimeout(d) } }

// WithDrain sets how long tools may keep running after the worker stops (default 10 seconds). It must be positive. Then
// they are interrupted, and called again after the redelivery.
func WithDrain(d time.Duration) Option { return func(r *rules) { r.SetDrain(d) } }

// WithTokens enables callback tokens (Call.Token; default: disabled). They are signed with secret, which the callback door
// must accept, and expire ttl after the timestamp of the call's record. The secret must have at least token.MinSecret (32) bytes;
// ttl must be at least a second. FlightDeck's dispatcher uses 24 hours.
func WithTokens(secret string, ttl time.Duration) Option {
	return func(r *rules) {
		if v, err := token.NewVerifier(secret); err != nil || !v.Configured() {
			r.Invalid("WithTokens: the secret must have at least %d bytes", token.MinSecret)
		}
		if ttl < time.Second {
			r.Invalid("WithTokens: ttl %s, want at least a second", ttl)
		}
		r.tokens = tokens{secret, ttl}
	}
}

// WithRemembered limits the age, number and total bytes of the results that are kept in memory and published again when
// their call is repeated (default 24 hours, 10,000 and 64 MiB). All bounds must be positive. The oldest results are evicted
// first; a result larger than bytes is not kept. For a repeat whose result is no longer kept, the tool is called again.
func WithRemembered(age time.Duration, calls int, bytes int64) Option {
	return func(r *rules) { r.SetRemembered(responder.Bounds{Age: age, Count: calls, Bytes: bytes}) }
}

// WithClock sets the clock for deadlines and timestamps (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option { return func(r *rules) { r.SetClock(c) } }

// WithLogger sets the logger (default: none). Inputs and results are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option { return func(r *rules) { r.SetLogger(l) } }

// WithWorker passes options to the worker that reads the topic, such as worker.WithMode or worker.WithInstanceID. They take
// precedence over the options of this package.
func WithWorker(opts ...worker.Option) Option {
	return func(r *rules) { r.Runtime = append(r.Runtime, opts...) }
}
