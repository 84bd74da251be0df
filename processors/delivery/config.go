package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of Graph and RoutesGraph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("delivery: invalid configuration")

// Config configures Graph and RoutesGraph. Give both the same one. Fields that are zero have their defaults.
type Config struct {
	// DefaultService says how deliveries are attempted to the services that Services does not name.
	DefaultService Service
	// Services says how deliveries to services are attempted, by their names. Zero fields take the values of DefaultService. The
	// name of an account of a channel is "{channel}/{account}"; its zero fields take the defaults of channels, see Channels.
	Services map[string]Service
	// Unrouted is the destination of outputs without a reply route (default: they are not delivered).
	Unrouted topics.Destination
	// Lease is how long an attempt may take until its receipt, before the delivery is retried (default 1 minute, at least 1 ms).
	// Set it longer than a sink's timeout plus the time that records wait for a sink. It doubles with every consecutive lost
	// attempt, up to 15 times Lease.
	Lease time.Duration
	// TTL is how long after its output a delivery ends dead, even if attempts are left (default 24 hours, at least 1 ms).
	TTL time.Duration
	// RouteTTL is how long a reply route is kept for its output (default 24 hours, as in the turn), and RouteWait how long an output
	// waits for its reply route before its delivery ends dead (default 30 s). Both are at least 1 ms.
	RouteTTL, RouteWait time.Duration
	// KeepDead is how long a dead delivery can be requeued (default 24 hours, at least 1 ms). A session keeps at most 16 of them.
	KeepDead time.Duration
	// RememberFor is for how long a session remembers ended deliveries, used routes and requeues (default 24 hours, at least 1 ms),
	// and RememberCount how many of them together (default 1000, at least 1). After that, a repeated output is delivered again.
	RememberFor   time.Duration
	RememberCount int
	// OpenLimit is how many deliveries of a session may be open (default 64, at least 1). Further deliveries end dead immediately.
	OpenLimit int
	// Breaker says when the circuit of a route opens.
	Breaker Breaker
	// RecordLimit is the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must not exceed
	// the producer's max.request.size and the topics' max.message.bytes. A larger delivery ends dead immediately.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes (default: RecordLimit less 64 KiB; at least 64 KiB, at most RecordLimit).
	RowLimit int
	// PeerCallbacks makes the group also deliver "{agent}-peer-callbacks", as it delivers message-output: the replies of tasks that
	// a peer has asked to be called back for, see package processors/peer. The topic must exist (topics.WithPeers).
	PeerCallbacks bool
	// Channels makes the group deliver outputs whose reply descriptor has an origin to that origin, as a topics.KindChannel, and
	// read "{agent}-channel-messages" too: what is sent to channels without a turn, such as replies to commands. The topic must exist
	// (topics.WithChannels). Otherwise such outputs are treated as outputs without a reply route.
	//
	// The deliveries of a session to an account are attempted in order. By default each is retried for 10 minutes, with waits of at
	// most 30 s: an outage of a platform may last that long, and the answers after it wait. An attempt that sent a part of a text
	// starts the budget and the attempts again for the rest of it. A Retry-After that exceeds the budget ends a delivery dead.
	// Services["slack/main"] sets that for the account main of Slack.
	Channels bool
}

// Service says how deliveries to a service, or to an account of a channel, are attempted and retried. The defaults below are those
// of services.
type Service struct {
	// Kind is the kind of transport (default topics.KindHTTP). It cannot be topics.KindChannel: only the origin of a turn makes
	// a delivery one to a channel.
	Kind string
	// Budget is how long a delivery is retried, from its first attempt, before it ends dead (default 2 minutes). The time
	// of deferred and lost attempts does not count.
	Budget time.Duration
	// Initial bounds the wait after the first failed attempt (default 1 s). The bound doubles with every failure, up to
	// Longest (default 15 s). Each wait is pseudo-random, between zero and its bound.
	Initial, Longest time.Duration
	// Attempts is how many attempts may fail before the delivery ends dead (default 100, at most 1000).
	Attempts int
	// InFlight is how many attempts to the service may be in flight (default 32). The count is read from a stale table, so
	// more may be in flight for a moment. The sink's own limit (sink.Config.RouteLimit) is never exceeded.
	InFlight int
	// Ordered makes the deliveries of a session to the service wait for earlier ones (default false).
	Ordered bool
}

// Breaker says when the circuit of a route opens. No attempts are made on a route while its circuit is open.
type Breaker struct {
	// Failures is how many attempts in a row must fail (default 5; negative: none, the circuit never opens).
	Failures int
	// Open is how long the circuit is open the first time (default 5 s, at least 1 ms). It doubles each further time without a
	// success in between, up to Longest (default 15 s, or Open if that is longer).
	Open, Longest time.Duration
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// Bounds that are not configured. They limit what untrusted records can store in a row.
const (
	maxRoutes     = 64       // unused routes of a session, as in the turn
	maxDescriptor = 64 << 10 // bytes of a reply descriptor
	maxDead       = 16       // dead deliveries kept for a session
	maxTurn       = 256      // bytes of a turn ID
	maxReason     = 64       // bytes of a failure's reason
	maxSinks      = 64       // sinks whose load is kept for a route
	maxGateAsk    = 16 << 10 // bytes of the gate in the descriptor of a channel
	minRecord     = envoption.MinRecordLimit

	minWait       = 10 * time.Millisecond  // shortest wait before another attempt
	firstDeferral = 100 * time.Millisecond // bound of the first wait for a route without room
	loadTTL       = 5 * time.Second        // how long a sink's report of its load counts
)

// The defaults of services and of the accounts of channels.
var (
	defaultService = Service{
		Kind: topics.KindHTTP, Budget: 2 * time.Minute, Initial: time.Second, Longest: 15 * time.Second, Attempts: 100, InFlight: 32,
	}
	defaultAccount = Service{
		Kind: topics.KindChannel, Budget: 10 * time.Minute, Initial: time.Second, Longest: 30 * time.Second, Attempts: 100, InFlight: 32,
		Ordered: true,
	}
)

// complete gives fields that are zero their defaults. Its error is that of Graph.
func (c *Config) complete() error {
	var check bounds.Check
	c.DefaultService = c.DefaultService.completed(defaultService)
	c.DefaultService.check(&check, "DefaultService")
	if c.DefaultService.Kind == topics.KindChannel {
		check.Wrong("DefaultService.Kind", "is %s, which needs an origin", topics.KindChannel)
	}
	if c.Unrouted.Kind == topics.KindChannel {
		check.Wrong("Unrouted.Kind", "is %s, which needs an origin", topics.KindChannel)
	}
	c.Services = maps.Clone(c.Services)
	for name, s := range c.Services {
		field := fmt.Sprintf("Services[%q]", name)
		if s.Kind == topics.KindChannel {
			check.Wrong(field+".Kind", "is %s: leave it empty", s.Kind)
		}
		to := topics.Destination{Service: name}
		if c.Channels && strings.Contains(name, "/") {
			to.Kind = topics.KindChannel
		}
		c.serviceOf(to).check(&check, field)
	}
	bounds.AtLeast(&check, "Lease", &c.Lease, time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "TTL", &c.TTL, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RouteTTL", &c.RouteTTL, topics.DefaultRouteTTL, time.Millisecond)
	bounds.AtLeast(&check, "RouteWait", &c.RouteWait, 30*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "KeepDead", &c.KeepDead, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RememberCount", &c.RememberCount, 1000, 1)
	bounds.AtLeast(&check, "OpenLimit", &c.OpenLimit, 64, 1)
	bounds.OrNone(&c.Breaker.Failures, 5)
	bounds.AtLeast(&check, "Breaker.Open", &c.Breaker.Open, 5*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "Breaker.Longest", &c.Breaker.Longest, max(15*time.Second, c.Breaker.Open), c.Breaker.Open)
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord)
	bounds.Between(&check, "RowLimit", &c.RowLimit, c.RecordLimit-rowMargin, minRecord-rowMargin, c.RecordLimit)
	return check.Err(ErrConfig)
}

func (s Service) check(check *bounds.Check, name string) {
	bounds.AtLeast(check, name+".Budget", &s.Budget, 0, time.Millisecond)
	bounds.AtLeast(check, name+".Initial", &s.Initial, 0, time.Millisecond)
	bounds.AtLeast(check, name+".Longest", &s.Longest, 0, s.Initial)
	bounds.Between(check, name+".Attempts", &s.Attempts, 0, 1, 1000)
	bounds.AtLeast(check, name+".InFlight", &s.InFlight, 0, 1)
}

// service returns the settings of a service that is no account of a channel.
func (c *Config) service(name string) Service { return c.Services[name].completed(c.DefaultService) }

// serviceOf returns the settings of a destination. Accounts of channels are named "{channel}/{account}".
func (c *Config) serviceOf(to topics.Destination) Service {
	if to.Kind == topics.KindChannel {
		return c.Services[to.Service].completed(defaultAccount)
	}
	return c.service(to.Service)
}

// completed returns the settings with those of d for zero fields.
func (s Service) completed(d Service) Service {
	return Service{
		Kind: cmp.Or(s.Kind, d.Kind), Budget: cmp.Or(s.Budget, d.Budget), Initial: cmp.Or(s.Initial, d.Initial),
		Longest: cmp.Or(s.Longest, d.Longest), Attempts: cmp.Or(s.Attempts, d.Attempts), InFlight: cmp.Or(s.InFlight, d.InFlight),
		Ordered: s.Ordered || d.Ordered,
	}
}
