package delivery

import (
	"maps"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Option sets a rule of Graph and RoutesGraph. Give both the same options. They check the values and return an error that
// names the first option that is out of range.
type Option func(*options)

type options struct {
	rules         Rules
	rowLimit      int // 0: the record limit less rowMargin
	peerCallbacks bool
}

// WithDefaultService sets how deliveries are attempted to the services that WithService does not name. Zero fields keep
// their defaults.
func WithDefaultService(s Service) Option {
	return func(o *options) {
		rules := o.rules
		rules.Services = map[string]Service{"": s}
		o.rules.Default = rules.service("")
	}
}

// WithService sets how deliveries to one service are attempted. Zero fields take the values of the default service. The name
// of an account of a channel is "{channel}/{account}"; its zero fields take the defaults of channels, see WithChannels.
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

// WithUnrouted sets the destination of outputs without a reply route (default: they are not delivered).
func WithUnrouted(d topics.Destination) Option {
	return func(o *options) { o.rules.Unrouted = d }
}

// WithLease sets how long an attempt may take until its receipt, before the delivery is retried (default 1 minute, at least
// 1 ms). Set it longer than a sink's timeout plus the time that records wait for a sink. It doubles with every consecutive
// lost attempt, up to 15 times d.
func WithLease(d time.Duration) Option {
	return func(o *options) { o.rules.Lease = d }
}

// WithTTL sets how long after its output a delivery ends dead, even if attempts are left (default 24 hours, at least 1 ms).
func WithTTL(d time.Duration) Option {
	return func(o *options) { o.rules.TTL = d }
}

// WithRoutes sets how long a reply route is kept for its output (default 24 hours, as in the turn), and how long an output
// waits for its reply route before its delivery ends dead (default 30 s). Both are at least 1 ms.
func WithRoutes(ttl, wait time.Duration) Option {
	return func(o *options) { o.rules.RouteTTL, o.rules.RouteWait = ttl, wait }
}

// WithKeepDead sets how long a dead delivery can be requeued (default 24 hours, at least 1 ms). A session keeps at most 16
// of them.
func WithKeepDead(d time.Duration) Option {
	return func(o *options) { o.rules.KeepDead = d }
}

// WithRemembered sets for how long a session remembers ended deliveries, used routes and requeues, and how many of them
// together (default 24 hours, 1000; at least 1 ms, 1). After that, a repeated output is delivered again.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithOpenLimit sets how many deliveries of a session may be open (default 64, at least 1). Further deliveries end dead
// immediately.
func WithOpenLimit(n int) Option {
	return func(o *options) { o.rules.OpenLimit = n }
}

// WithBreaker sets when the circuit of a route opens (default: after 5 failures in a row, for 5 s at first and 15 s at
// most).
func WithBreaker(b Breaker) Option {
	return func(o *options) { o.rules.Breaker = b }
}

// WithRecordLimit sets the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must
// not exceed the producer's max.request.size and the topics' max.message.bytes. A larger delivery ends dead immediately.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the largest row of a session in bytes (default: the record limit less 64 KiB; at least 64 KiB, at most
// the record limit).
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

// WithPeerCallbacks makes the group also deliver "{agent}-peer-callbacks", as it delivers message-output: the replies of tasks
// that a peer has asked to be called back for, see package processors/peer. The topic must exist (topics.WithPeers).
func WithPeerCallbacks() Option {
	return func(o *options) { o.peerCallbacks = true }
}

// WithChannels makes the group deliver outputs whose reply descriptor has an origin to that origin, as a topics.KindChannel,
// and read "{agent}-channel-messages" too: what is sent to channels without a turn, such as replies to commands. The topic must
// exist (topics.WithChannels). Otherwise such outputs are treated as outputs without a reply route.
//
// The deliveries of a session to an account are attempted in order. By default each is retried for 10 minutes, with waits of at
// most 30 s: an outage of a platform may last that long, and the answers after it wait. An attempt that sent a part of a text starts
// the budget and the attempts again for the rest of it. A Retry-After that exceeds the budget ends a delivery dead. WithService("slack/main", ...) sets that for the account main of Slack.
func WithChannels() Option {
	return func(o *options) { o.rules.ToChannels = true }
}

func rulesOf(opts []Option) (Rules, error) {
	o, err := optionsOf(opts)
	return o.rules, err
}

func optionsOf(opts []Option) (options, error) {
	o := options{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	return o, o.rules.validate()
}
