package delegationhttp

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run.
var ErrConfig = errors.New("delegationhttp: bad configuration")

// Option configures New and NewIndex.
type Option func(*options)

type options struct {
	limit        int
	lookback     time.Duration
	authenticate auth.Authenticate
	concurrency  int
	limits       auth.Limits
	origins      []string
	headers      []string
	audit        auth.AuditSink
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

// bodyLimit is that of the entrance. The door reads no bodies.
const bodyLimit = 1 << 10

func newOptions(opts []Option) options {
	o := options{
		limit: 200_000, lookback: 24 * time.Hour, concurrency: 1024, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithDelegationLimit sets how many delegations an Index has (default 200,000, at least 1). Each takes some hundred bytes. Over
// the limit, those without a record for the longest time are forgotten: requests for them get 404.
func WithDelegationLimit(n int) Option {
	return func(o *options) {
		if n < 1 {
			o.invalid("WithDelegationLimit: %d, want at least 1", n)
		}
		o.limit = n
	}
}

// WithLookback sets for how long an Index has a delegation after its last record (default 24 hours, at least 1 s). It must be
// longer than delegations take, and not longer than the retention of the topic.
func WithLookback(d time.Duration) Option {
	return func(o *options) {
		if d < time.Second {
			o.invalid("WithLookback: %s, want at least 1s", d)
		}
		o.lookback = d
	}
}

// WithAuthenticate sets the authentication of the door (default: none, everyone may read everything). A request for which a
// returns an error, or whose credential has ended, is answered with 401. The caller needs the right auth.Read. A delegation of a
// session that the caller may not use is answered as one that does not exist. a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(o *options) {
		if a == nil {
			o.invalid("WithAuthenticate: nil")
		}
		o.authenticate = a
	}
}

// WithConcurrency sets the maximum number of concurrent requests (default 1024, at least 1). Further requests get 503.
func WithConcurrency(requests int) Option {
	return func(o *options) {
		if requests < 1 {
			o.invalid("WithConcurrency: %d, want at least 1", requests)
		}
		o.concurrency = requests
	}
}

// WithLimits sets the limits of each caller and of each session (default: 256 concurrent requests, 500 per second and a
// burst of 1000 per caller; 32 concurrent requests, 20 per second and a burst of 100 per session; 10,000 keys).
func WithLimits(l auth.Limits) Option { return func(o *options) { o.limits = l } }

// WithCORS allows the scripts of an origin ("*" for any) to use the door, with cookies if the origin is named, and to send
// request headers besides Content-Type. The option may be repeated (default: none).
//
// Without WithAuthenticate, a request that arrives at a loopback address must name this machine or the host of a named origin,
// otherwise it is answered with 403: the page of any site can give this machine another name. With "*" it may name any host.
func WithCORS(origin string, headers ...string) Option {
	return func(o *options) {
		if origin == "" {
			o.invalid("WithCORS: no origin")
		}
		o.origins, o.headers = append(o.origins, origin), append(o.headers, headers...)
	}
}

// WithAudit sets the receiver of events about requests that were refused (default: the logger). It must not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(o *options) {
		if sink == nil {
			o.invalid("WithAudit: nil")
		}
		o.audit = sink
	}
}

// WithClock sets the clock of limits, of the look-back and of the end of credentials (default: the system clock). It must not
// be nil.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). Results are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}

// entrance returns the entrance of the door. Its errors are those of the options.
func (o *options) entrance(agent string) *entrance.Entrance {
	var check bounds.Check
	e := entrance.New(&check, entrance.Config{
		Door: auth.Door{
			Authenticate: o.authenticate, Origins: o.origins, Headers: o.headers, BodyLimit: bodyLimit, Concurrency: o.concurrency, Limits: o.limits,
			Audit: o.audit, Clock: o.clock, Logger: o.logger,
		},
		Name: "delegations", Agent: agent, CORS: entrance.CORS{Methods: "GET, OPTIONS"},
	})
	if err := check.Err(ErrConfig); err != nil {
		o.errs = append(o.errs, err)
	}
	return e
}
