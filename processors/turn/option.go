package turn

import "time"

// Option changes a rule of Graph. Values are checked by Graph, which names the one that is out of range.
type Option func(*options)

type options struct {
	rules    Rules
	rowLimit int // 0: derived from the record limit
}

// WithThinkTimeout sets how long a step waits for its think-response before the turn ends in an error output, code
// think_timeout (default 10 minutes). At least a millisecond, as every duration here.
func WithThinkTimeout(d time.Duration) Option {
	return func(o *options) { o.rules.ThinkTimeout = d }
}

// WithToolTimeout sets how long the tools of a step may take before the open calls get error results (default 5
// minutes).
func WithToolTimeout(d time.Duration) Option {
	return func(o *options) { o.rules.ToolTimeout = d }
}

// WithRouteTTL sets how long a reply route can be used (default 24 hours).
func WithRouteTTL(d time.Duration) Option {
	return func(o *options) { o.rules.RouteTTL = d }
}

// WithRemembered sets for how long a session remembers finished calls, request ids and applied records, and how many of
// each (default 24 hours, 1000). What is forgotten is new when it comes again. As long as callback tokens live is
// right.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithQueue sets what becomes of messages that come while a turn of their session runs, and how many may wait (default
// Queue, 16).
func WithQueue(policy Policy, limit int) Option {
	return func(o *options) { o.rules.Policy, o.rules.QueueLimit = policy, limit }
}

// WithRecordLimit sets the size in bytes, key and headers included, up to which a record is written (default 1 MiB, at
// least 128 KiB). It must not exceed the producer's max.request.size and the topics' max.message.bytes.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the size in bytes up to which a session's row may grow (default: the record limit less 64 KiB).
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

// WithDelivery says that processors/delivery delivers the outputs (default: no). The reply descriptor of an output then
// has a route_id in place of its bearer token, which stays in the reply-to record: FlightDeck's own consumer of
// message-output cannot use it. A tombstone on reply-to that processors/delivery did not write then always withdraws the
// oldest open route without a request_id.
func WithDelivery() Option {
	return func(o *options) { o.rules.Delivery = true }
}

// WithIdlePurge removes sessions in which nothing happened for that long and no turn runs (default 0: never).
func WithIdlePurge(d time.Duration) Option {
	return func(o *options) { o.rules.IdleAfter = d }
}

func rulesOf(opts []Option) (Rules, error) {
	o := options{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	return o.rules, o.rules.validate()
}
