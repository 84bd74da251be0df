package delivery

import (
	"maps"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Option changes a rule of Graph and RoutesGraph, which take the same ones. Values are checked there; the error names
// the one that is out of range.
type Option func(*options)

type options struct {
	rules    Rules
	rowLimit int // 0: derived from the record limit
}

// WithDefaultService sets how services are delivered to. Fields that are zero keep their defaults.
func WithDefaultService(s Service) Option {
	return func(o *options) {
		rules := o.rules
		rules.Services = map[string]Service{"": s}
		o.rules.Default = rules.service("")
	}
}

// WithService sets how one service is delivered to. Fields that are zero are those of the default service.
func WithService(name string, s Service) Option {
	return func(o *options) {
		services := maps.Clone(o.rules.Services)
		if services == nil {
			services = map[string]Service{}
		}
		services[name] = s
		o.rules.Services = services
	}
}

// WithUnrouted sets where outputs go that have no reply route (default: nowhere, they are not delivered).
func WithUnrouted(d topics.Destination) Option {
	return func(o *options) { o.rules.Unrouted = d }
}

// WithLease sets how long the receipt of an attempt is waited for before another is made (default 1 minute): longer
// than a sink's deadline and the time records wait for it. It doubles with every attempt that is lost in a row, up to 15
// times as long.
func WithLease(d time.Duration) Option {
	return func(o *options) { o.rules.Lease = d }
}

// WithTTL sets how long after its output a delivery is given up, whatever becomes of it (default 24 hours).
func WithTTL(d time.Duration) Option {
	return func(o *options) { o.rules.TTL = d }
}

// WithRoutes sets how long a reply route waits for its output (default 24 hours, as the turn's), and how long an output
// waits for its route before it is dead (default 30 s).
func WithRoutes(ttl, wait time.Duration) Option {
	return func(o *options) { o.rules.RouteTTL, o.rules.RouteWait = ttl, wait }
}

// WithKeepDead sets for how long a dead delivery can be requeued (default 24 hours). At most 16 are kept for a session.
func WithKeepDead(d time.Duration) Option {
	return func(o *options) { o.rules.KeepDead = d }
}

// WithRemembered sets for how long a session remembers deliveries that ended, and how many (default 24 hours, 1000).
// What is forgotten is new when its output comes again.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithOpenLimit sets how many deliveries of a session may be open (default 64); those beyond are dead at once.
func WithOpenLimit(n int) Option {
	return func(o *options) { o.rules.OpenLimit = n }
}

// WithBreaker sets when the circuit of a route opens (default: after 5 failures in a row, for 5 s up to 15 s).
func WithBreaker(b Breaker) Option {
	return func(o *options) { o.rules.Breaker = b }
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
