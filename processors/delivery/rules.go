package delivery

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// ErrOption is wrapped by every error about an option or an environment variable that is out of range.
var ErrOption = errors.New("delivery: option out of range")

// Service is how deliveries to a service are made.
type Service struct {
	// Kind is the transport (default topics.KindHTTP).
	Kind string
	// Budget is for how long a delivery is tried before it is dead, from its first attempt on (default 2 minutes).
	// Time in which no attempt could be made because the sink was busy or gone does not count.
	Budget time.Duration
	// Initial is the wait after the first failure, and Longest after any: the upper ends, each wait is drawn from zero
	// up to them (defaults 1 s and 15 s).
	Initial, Longest time.Duration
	// Attempts is how many attempts may fail (default 100, at most 1000).
	Attempts int
	// InFlight is how many attempts may be on their way to the service (default 32). It is read from a table that is
	// late, so it may be passed for a moment; the sink's own limit may not.
	InFlight int
	// Ordered has later deliveries of a session to the service wait for earlier ones.
	Ordered bool
}

// Rules are what a transition needs to know besides state, event, routes and time. Every duration and count is
// positive.
type Rules struct {
	// Default is how deliveries are made to services that Services does not name.
	Default  Service
	Services map[string]Service
	// Unrouted is where outputs go that have no reply route; where its kind is empty they are not delivered.
	Unrouted topics.Destination
	// Lease is how long the receipt of an attempt is waited for.
	Lease time.Duration
	// TTL is how long after its output a delivery is given up, whatever becomes of it.
	TTL time.Duration
	// RouteTTL is how long a reply route waits for its output, RouteWait how long an output waits for its route.
	RouteTTL, RouteWait time.Duration
	// KeepDead is for how long a dead delivery can be requeued.
	KeepDead time.Duration
	// RememberFor and RememberCount bound what a session remembers of deliveries that ended.
	RememberFor   time.Duration
	RememberCount int
	// OpenLimit is how many deliveries of a session may be open.
	OpenLimit int
	// RecordLimit is the size in bytes up to which a record may be written, with key and headers.
	RecordLimit int
	// RowLimit is the size in bytes up to which the row of a session may grow.
	RowLimit int
	// Breaker says when the circuit of a route opens.
	Breaker Breaker
}

// Breaker says when the circuit of a route opens: while it does no attempt is made.
type Breaker struct {
	// Failures is how many attempts in a row must fail; 0 never opens it.
	Failures int
	// Open is for how long it opens first, and Longest at most: each time in a row doubles it.
	Open, Longest time.Duration
}

// rowMargin is what a row stays below the limit of a record: its key, the record's frame, a deadline that moves.
const rowMargin = 64 << 10

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	const recordLimit = 1 << 20 // what a Kafka producer sends by default (max.request.size)
	return Rules{
		Default: Service{
			Kind: topics.KindHTTP, Budget: 2 * time.Minute, Initial: time.Second, Longest: 15 * time.Second,
			Attempts: 100, InFlight: 32,
		},
		Lease:         time.Minute,
		TTL:           24 * time.Hour,
		RouteTTL:      topics.DefaultRouteTTL,
		RouteWait:     30 * time.Second,
		KeepDead:      24 * time.Hour,
		RememberFor:   24 * time.Hour,
		RememberCount: 1000,
		OpenLimit:     64,
		RecordLimit:   recordLimit,
		RowLimit:      recordLimit - rowMargin,
		Breaker:       Breaker{Failures: 5, Open: 5 * time.Second, Longest: 15 * time.Second},
	}
}

// Bounds that are no options: nobody sane meets them, and without them a stranger fills the row.
const (
	maxRoutes = 64        // open routes of a session, as the turn has them
	maxToken  = 64 << 10  // bytes of a descriptor
	maxDead   = 16        // dead deliveries that are kept for a session
	maxTurn   = 256       // bytes of a turn's id
	maxReason = 64        // bytes of an attempt's reason
	maxTries  = 1000      // most sensible Service.Attempts
	maxSinks  = 64        // sinks whose reports about a route are kept
	minRecord = 128 << 10 // least sensible RecordLimit

	minWait       = 10 * time.Millisecond  // shortest wait before another attempt
	firstDeferral = 100 * time.Millisecond // first wait for a route with no room, at most
	loadFor       = 5 * time.Second        // how long a sink's report about a route counts
)

// service is how a service is delivered to: what it does not say is said by the default.
func (r Rules) service(name string) Service {
	s := r.Services[name]
	d := r.Default
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

func fill[T time.Duration | int](v *T, missing T) {
	if *v == 0 {
		*v = missing
	}
}

// validate names the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"lease", r.Lease},
		{"time to live", r.TTL},
		{"route TTL", r.RouteTTL},
		{"wait for a route", r.RouteWait},
		{"time that the dead are kept", r.KeepDead},
		{"remembered time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	if err := r.Default.validate("default"); err != nil {
		return err
	}
	for name := range r.Services {
		if err := r.service(name).validate(name); err != nil {
			return err
		}
	}
	switch {
	case r.RememberCount < 1:
		return fmt.Errorf("%w: remembered count is %d, want 1 or more", ErrOption, r.RememberCount)
	case r.OpenLimit < 1:
		return fmt.Errorf("%w: open limit is %d, want 1 or more", ErrOption, r.OpenLimit)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	case r.Breaker.Failures < 0:
		return fmt.Errorf("%w: breaker opens after %d failures, want 0 (never) or more", ErrOption, r.Breaker.Failures)
	case r.Breaker.Failures > 0 && (r.Breaker.Open < time.Millisecond || r.Breaker.Longest < r.Breaker.Open):
		return fmt.Errorf("%w: breaker opens for %v up to %v, want 1ms or more and no shorter one",
			ErrOption, r.Breaker.Open, r.Breaker.Longest)
	}
	return nil
}

func (s Service) validate(name string) error {
	switch {
	case s.Budget < time.Millisecond:
		return fmt.Errorf("%w: service %s: budget is %v, want 1ms or more", ErrOption, name, s.Budget)
	case s.Initial < time.Millisecond || s.Longest < s.Initial:
		return fmt.Errorf("%w: service %s: waits are %v up to %v, want 1ms or more and no shorter one",
			ErrOption, name, s.Initial, s.Longest)
	case s.Attempts < 1 || s.Attempts > maxTries:
		return fmt.Errorf("%w: service %s: %d attempts, want 1 to %d", ErrOption, name, s.Attempts, maxTries)
	case s.InFlight < 1:
		return fmt.Errorf("%w: service %s: %d in flight, want 1 or more", ErrOption, name, s.InFlight)
	}
	return nil
}
