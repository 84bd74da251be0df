package invoke

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold"
)

// Option configures New. New returns an error that wraps ErrDoor for a value that is out of range.
type Option func(*rules)

type rules struct {
	authenticate auth.Authenticate
	resolve      func(context.Context, Request) (Request, error)
	capability   *Capability
	bodyLimit    int64
	batchLimit   int
	concurrency  int
	keepalive    time.Duration
	writeTimeout time.Duration
	version      string
	limits       auth.Limits
	origins      []string
	headers      []string
	audit        auth.AuditSink
	fold         []fold.Option
	random       io.Reader
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

func newRules(opts []Option) (rules, error) {
	r := rules{
		bodyLimit: 1 << 20, batchLimit: 64 << 20, concurrency: 1024, keepalive: 15 * time.Second,
		writeTimeout: 30 * time.Second, version: "unknown", random: rand.Reader, clock: clock.System(),
		logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	return r, errors.Join(r.errs...)
}

func (r *rules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrDoor}, args...)...))
}

// WithAuthenticate sets how callers are authenticated (default: every request is accepted). If a returns an *Error, the
// response has its status and text; any other error is answered with 401. A request for a session that the caller may not
// use is answered with 403, and so is one without the rights: auth.Read to resume a turn, auth.Read and auth.Write to
// start one, auth.Read and auth.Answer to continue a paused one (see Answerer). When the credential expires, an open stream ends with an error event (code credential_expired) and
// stream_end, and a batch that is not complete is answered with 401. The turn continues, and the client can resume it with
// a new credential. The caller is passed to the agent in Request.Caller; the door does not use the UserID.
// a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(r *rules) {
		if a == nil {
			r.invalid("WithAuthenticate: nil")
		}
		r.authenticate = a
	}
}

// WithResolve sets a function that changes each new request before the agent gets it, for example to load documents that
// the request refers to (default: none). It is not called for a request whose flag resolve is false.
func WithResolve(resolve func(context.Context, Request) (Request, error)) Option {
	return func(r *rules) { r.resolve = resolve }
}

// WithCapability sets the agent's capability (default: the one the agent declares).
func WithCapability(c Capability) Option {
	return func(r *rules) {
		if c.Shape > StreamOnly {
			r.invalid("WithCapability: unknown shape %d", c.Shape)
		}
		r.capability = &c
	}
}

// WithBodyLimit sets the maximum size of a body in bytes (default 1 MiB, at least 1). A larger one gets 413.
func WithBodyLimit(bytes int64) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.invalid("WithBodyLimit: %d, want at least 1", bytes)
		}
		r.bodyLimit = bytes
	}
}

// WithBatchLimit sets the maximum size in bytes of a turn that is answered as a batch (default 64 MiB, at least 1). A
// larger turn is answered with an error. Streams are not limited.
func WithBatchLimit(bytes int) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.invalid("WithBatchLimit: %d, want at least 1", bytes)
		}
		r.batchLimit = bytes
	}
}

// WithConcurrency sets the maximum number of concurrent requests (default 1024, at least 1). Further requests get 503.
func WithConcurrency(requests int) Option {
	return func(r *rules) {
		if requests < 1 {
			r.invalid("WithConcurrency: %d, want at least 1", requests)
		}
		r.concurrency = requests
	}
}

// WithKeepalive sets after how long without an event a stream sends a keepalive (default 15 s). Zero or less disables
// keepalives.
func WithKeepalive(silence time.Duration) Option { return func(r *rules) { r.keepalive = silence } }

// WithWriteTimeout sets the deadline of each write to a client (default 30 s). The connection to a slower client is closed.
// Zero leaves the server's deadline unchanged.
func WithWriteTimeout(d time.Duration) Option {
	return func(r *rules) {
		if d < 0 {
			r.invalid("WithWriteTimeout: %s, want no negative time", d)
		}
		r.writeTimeout = d
	}
}

// WithVersion sets the response header x-ag-version (default "unknown").
func WithVersion(version string) Option { return func(r *rules) { r.version = version } }

// WithCORS allows browser scripts of an origin ("*" for any) to send requests to the door and to read its response headers
// (default: no origin). Scripts of a named origin may send cookies. headers are allowed in requests in addition to those of
// the door. The option may be repeated. Requests of pages of other origins than the named ones are answered with 403; with
// WithAuthenticate also with "*".
//
// Without WithAuthenticate, a request that arrives at a loopback address must name this machine or the host of a named origin,
// otherwise it is answered with 403: the page of any site can give this machine another name. With "*" it may name any host.
func WithCORS(origin string, headers ...string) Option {
	return func(r *rules) {
		if origin == "" {
			r.invalid("WithCORS: no origin")
		}
		r.origins, r.headers = append(r.origins, origin), append(r.headers, headers...)
	}
}

// WithLimits sets the limits of each caller and of each session (default: 256 concurrent requests, 500 per second and a
// burst of 1000 per caller; 32 concurrent requests, 20 per second and a burst of 100 per session; 64 MiB of bodies, 16 MiB
// of one caller, or twice the body limit if that is more; at least 8 KiB per second, silence of 10 s; 10,000 keys). A stream
// is a request that is open until its end.
func WithLimits(l auth.Limits) Option { return func(r *rules) { r.limits = l } }

// WithAudit sets the receiver of events about requests that started a turn or were refused (default: the logger). It must
// not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(r *rules) {
		if sink == nil {
			r.invalid("WithAudit: nil")
		}
		r.audit = sink
	}
}

// WithStrictFold makes a batch with a malformed event fail (default: the event is left out). Streams always contain the
// event.
func WithStrictFold() Option { return func(r *rules) { r.fold = []fold.Option{fold.Strict()} } }

// WithRandom sets the source of trace, span and session ids (default: crypto/rand). It is not read concurrently.
func WithRandom(source io.Reader) Option {
	return func(r *rules) {
		if source == nil {
			r.invalid("WithRandom: nil")
			return
		}
		r.random = source
	}
}

// WithClock sets the clock for keepalives and the expiry of credentials (default: the system clock).
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.invalid("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). The door logs no contents of requests and events.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
