package gatehttp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run.
var ErrConfig = errors.New("gatehttp: bad configuration")

// Option configures New and NewIndex.
type Option func(*options)

type options struct {
	gates        int
	rowBytes     int
	authenticate auth.Authenticate
	bodyLimit    int64
	concurrency  int
	limits       auth.Limits
	origins      []string
	headers      []string
	wait         time.Duration
	audit        auth.AuditSink
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

// maxWait is the longest wait of a request for an outcome.
const maxWait = 55 * time.Second

func newOptions(opts []Option) options {
	o := options{
		gates: 200_000, rowBytes: 64 << 20, bodyLimit: 1 << 20, concurrency: 1024, wait: 5 * time.Second,
		clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithGateLimit sets how many gates and sessions an Index has (default 200,000, at least 1). Each takes some hundred bytes.
// Over the limit, the gates that have ended are forgotten first, oldest first: requests for them get 404. If there are more
// open gates, the Index logs an error and leaves new ones out: requests for gates that it does not have get 503 then.
func WithGateLimit(n int) Option {
	return func(o *options) {
		if n < 1 {
			o.invalid("WithGateLimit: %d, want at least 1", n)
		}
		o.gates = n
	}
}

// WithRowMemory sets how many bytes of rows an Index keeps in memory (default 64 MiB, at least 1). It reads others from the
// brokers when they are needed.
func WithRowMemory(bytes int) Option {
	return func(o *options) {
		if bytes < 1 {
			o.invalid("WithRowMemory: %d, want at least 1", bytes)
		}
		o.rowBytes = bytes
	}
}

// WithAuthenticate sets the authentication of the door (default: none, everyone may decide everything). A request for which
// a returns an error, or whose credential has ended, is answered with 401. To read gates needs the right auth.Read, a
// decision auth.Answer, and everything about grants auth.Control. A gate of a session that the caller may not use is
// answered as one that does not exist.
// a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(o *options) {
		if a == nil {
			o.invalid("WithAuthenticate: nil")
		}
		o.authenticate = a
	}
}

// WithBodyLimit sets the maximum size of a decision in bytes (default 1 MiB, at least 1). A longer body is answered with 413.
func WithBodyLimit(bytes int64) Option {
	return func(o *options) {
		if bytes < 1 {
			o.invalid("WithBodyLimit: %d, want at least 1", bytes)
		}
		o.bodyLimit = bytes
	}
}

// WithConcurrency sets the maximum number of concurrent requests (default 1024, at least 1). Requests that wait for an
// outcome count. Further requests get 503.
func WithConcurrency(requests int) Option {
	return func(o *options) {
		if requests < 1 {
			o.invalid("WithConcurrency: %d, want at least 1", requests)
		}
		o.concurrency = requests
	}
}

// WithLimits sets the limits of each caller and of each session (default: 256 concurrent requests, 500 per second and a
// burst of 1000 per caller; 32 concurrent requests, 20 per second and a burst of 100 per session; 64 MiB of bodies, 16 MiB
// of one caller, or twice the body limit if that is more; at least 8 KiB per second, silence of 10 s; 10,000 keys).
func WithLimits(l auth.Limits) Option { return func(o *options) { o.limits = l } }

// WithCORS allows the scripts of an origin ("*" for any) to use the door, with cookies if the origin is named, and to send
// request headers besides Content-Type. The option may be repeated (default: none). Name Authorization and Idempotency-Key
// here if browsers send them. Requests of pages of other origins than the named ones that would change something are answered
// with 403; with WithAuthenticate also with "*".
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

// WithDecisionWait sets how long a decision waits for the outcome, unless the request says otherwise (default 5 s, 0 to
// 55 s). After it, the decision is answered with 202.
func WithDecisionWait(d time.Duration) Option {
	return func(o *options) {
		if d < 0 || d > maxWait {
			o.invalid("WithDecisionWait: %s, want 0 to %s", d, maxWait)
		}
		o.wait = d
	}
}

// WithAudit sets the receiver of events about decisions, revocations and requests that were refused (default: the logger).
// It must not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(o *options) {
		if sink == nil {
			o.invalid("WithAudit: nil")
		}
		o.audit = sink
	}
}

// WithClock sets the clock for waits, the end of credentials, and when an index reads again what it has left out (default: the
// system clock). It must not be nil.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). The contents of requests and gates are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}

func (o *options) cors() entrance.CORS {
	return entrance.CORS{
		Origins: o.origins, Methods: "GET, POST, DELETE, OPTIONS",
		Headers: strings.Join(append([]string{"Content-Type"}, o.headers...), ", "),
	}
}

// entrance returns the entrance of the door. Its errors are those of the options.
func (o *options) entrance(agent string) *entrance.Entrance {
	limits, err := o.limits.Or(entrance.DefaultLimits(o.bodyLimit))
	if err != nil {
		o.invalid("WithLimits: %w", err)
		return nil
	}
	e, err := entrance.New(entrance.Config{
		Name: "gate", Agent: agent, Authenticate: o.authenticate, Requests: max(o.concurrency, 1), Limits: limits,
		BodyLimit: o.bodyLimit, Origins: o.origins, Audit: o.audit, Clock: o.clock, Logger: o.logger,
	})
	if err != nil {
		o.invalid("%w", err)
	}
	return e
}
