package delivery

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/topics"
)

// ErrOption is wrapped by every error of Graph and RoutesGraph about an option that is out of range.
var ErrOption = errors.New("delivery: option out of range")

// Service sets how deliveries to a service, or to an account of a channel, are attempted and retried. A zero field takes the
// value of the default service, or that of Rules.Channels. The defaults below are those of services.
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
	// more may be in flight for a moment. The sink's own limit (sink.WithRouteLimit) is never exceeded.
	InFlight int
	// Ordered makes the deliveries of a session to the service wait for earlier ones (default false).
	Ordered bool
}

// Rules are the settings of a transition. Every duration and count is positive.
type Rules struct {
	// Default applies to services that Services does not name.
	Default Service
	// Services are the settings by service name. Their zero fields take the values of Default.
	Services map[string]Service
	// ToChannels says that outputs with an origin are delivered to its channel.
	ToChannels bool
	// Channels applies to the accounts of channels that Services does not name. Its deliveries are always Ordered.
	Channels Service
	// Unrouted is the destination of outputs without a reply route. If its kind is empty, they are not delivered.
	Unrouted topics.Destination
	// Lease is how long an attempt may take until its receipt, before the delivery is retried.
	Lease time.Duration
	// TTL is how long after its output a delivery ends dead, even if attempts are left.
	TTL time.Duration
	// RouteTTL is how long a reply route is kept for its output, RouteWait how long an output waits for its reply route.
	RouteTTL, RouteWait time.Duration
	// KeepDead is how long a dead delivery can be requeued.
	KeepDead time.Duration
	// RememberFor and RememberCount bound the digests by which a session deduplicates.
	RememberFor   time.Duration
	RememberCount int
	// OpenLimit is how many deliveries of a session may be open.
	OpenLimit int
	// RecordLimit is the largest record in bytes, including key and headers.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes.
	RowLimit int
	// Breaker sets when the circuit of a route opens.
	Breaker Breaker
}

// Breaker sets when the circuit of a route opens. No attempts are made on a route while its circuit is open.
type Breaker struct {
	// Failures is how many attempts in a row must fail; 0 disables the circuit breaker.
	Failures int
	// Open is how long the circuit is open the first time. It doubles each further time without a success in between, up to
	// Longest.
	Open, Longest time.Duration
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	return Rules{
		Default: Service{
			Kind: topics.KindHTTP, Budget: 2 * time.Minute, Initial: time.Second, Longest: 15 * time.Second,
			Attempts: 100, InFlight: 32,
		},
		Channels: Service{
			Kind: topics.KindChannel, Budget: 10 * time.Minute, Initial: time.Second, Longest: 30 * time.Second,
			Attempts: 100, InFlight: 32, Ordered: true,
		},
		Lease:         time.Minute,
		TTL:           24 * time.Hour,
		RouteTTL:      topics.DefaultRouteTTL,
		RouteWait:     30 * time.Second,
		KeepDead:      24 * time.Hour,
		RememberFor:   24 * time.Hour,
		RememberCount: 1000,
		OpenLimit:     64,
		RecordLimit:   envoption.DefaultRecordLimit,
		RowLimit:      envoption.DefaultRecordLimit - rowMargin,
		Breaker:       Breaker{Failures: 5, Open: 5 * time.Second, Longest: 15 * time.Second},
	}
}

// Bounds that are not options. They limit what untrusted records can store in a row.
const (
	maxRoutes     = 64       // unused routes of a session, as in the turn
	maxDescriptor = 64 << 10 // bytes of a reply descriptor
	maxDead       = 16       // dead deliveries kept for a session
	maxTurn       = 256      // bytes of a turn ID
	maxReason     = 64       // bytes of a failure's reason
	maxAttempts   = 1000     // largest Service.Attempts
	maxSinks      = 64       // sinks whose load is kept for a route
	maxGateAsk    = 16 << 10 // bytes of the gate in the descriptor of a channel
	minRecord     = envoption.MinRecordLimit

	minWait       = 10 * time.Millisecond  // shortest wait before another attempt
	firstDeferral = 100 * time.Millisecond // bound of the first wait for a route without room
	loadTTL       = 5 * time.Second        // how long a sink's report of its load counts
)

// service returns the settings of a service: its own, completed by the default service's.
func (r Rules) service(name string) Service { return r.Services[name].completed(r.Default) }

// serviceOf returns the settings of a destination. The accounts of channels, named "{channel}/{account}", are completed by
// Rules.Channels.
func (r Rules) serviceOf(to topics.Destination) Service {
	if to.Kind == topics.KindChannel {
		return r.Services[to.Service].completed(r.Channels)
	}
	return r.service(to.Service)
}

// completed returns the settings with those of d for zero fields.
func (s Service) completed(d Service) Service {
	if s.Kind == "" {
		s.Kind = d.Kind
	}
	fill(&s.Budget, d.Budget)
	fill(&s.Initial, d.Initial)
	fill(&s.Longest, d.Longest)
	fill(&s.Attempts, d.Attempts)
	fill(&s.InFlight, d.InFlight)
	s.Ordered = s.Ordered || d.Ordered
	return s
}

// fill sets v to missing if it is zero.
func fill[T time.Duration | int](v *T, missing T) {
	if *v == 0 {
		*v = missing
	}
}

// validate returns an error that names the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"lease", r.Lease},
		{"time to live", r.TTL},
		{"route TTL", r.RouteTTL},
		{"route wait", r.RouteWait},
		{"time to keep dead deliveries", r.KeepDead},
		{"remember time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	if err := r.Default.validate("default"); err != nil {
		return err
	}
	if r.Default.Kind == topics.KindChannel {
		return fmt.Errorf("%w: default service: kind is %s, which needs an origin", ErrOption, r.Default.Kind)
	}
	if r.Unrouted.Kind == topics.KindChannel {
		return fmt.Errorf("%w: unrouted: kind is %s, which needs an origin", ErrOption, r.Unrouted.Kind)
	}
	if err := r.validateServices(); err != nil {
		return err
	}
	switch {
	case r.RememberCount < 1:
		return fmt.Errorf("%w: remember count is %d, want 1 or more", ErrOption, r.RememberCount)
	case r.OpenLimit < 1:
		return fmt.Errorf("%w: open limit is %d, want 1 or more", ErrOption, r.OpenLimit)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	case r.Breaker.Failures < 0:
		return fmt.Errorf("%w: breaker failures is %d, want 0 (disabled) or more", ErrOption, r.Breaker.Failures)
	case r.Breaker.Failures > 0 && (r.Breaker.Open < time.Millisecond || r.Breaker.Longest < r.Breaker.Open):
		return fmt.Errorf("%w: breaker is open for %v, at most %v: want 1ms or more, and a maximum that is not shorter",
			ErrOption, r.Breaker.Open, r.Breaker.Longest)
	}
	return nil
}

// validateServices checks the named services. A name with a slash is the account of a channel if the group delivers to
// channels.
func (r Rules) validateServices() error {
	for name, s := range r.Services {
		if s.Kind == topics.KindChannel {
			return fmt.Errorf("%w: service %s: kind is %s: leave it empty", ErrOption, name, s.Kind)
		}
		complete := r.service(name)
		if r.ToChannels && strings.Contains(name, "/") {
			complete = r.serviceOf(topics.Destination{Kind: topics.KindChannel, Service: name})
		}
		if err := complete.validate(name); err != nil {
			return err
		}
	}
	return nil
}

func (s Service) validate(name string) error {
	switch {
	case s.Budget < time.Millisecond:
		return fmt.Errorf("%w: service %s: budget is %v, want 1ms or more", ErrOption, name, s.Budget)
	case s.Initial < time.Millisecond || s.Longest < s.Initial:
		return fmt.Errorf("%w: service %s: initial wait is %v, longest %v: want 1ms or more, and a longest that is not shorter",
			ErrOption, name, s.Initial, s.Longest)
	case s.Attempts < 1 || s.Attempts > maxAttempts:
		return fmt.Errorf("%w: service %s: %d attempts, want 1 to %d", ErrOption, name, s.Attempts, maxAttempts)
	case s.InFlight < 1:
		return fmt.Errorf("%w: service %s: %d in flight, want 1 or more", ErrOption, name, s.InFlight)
	}
	return nil
}
