package turnhttp

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
)

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("turnhttp: bad configuration")

// Option configures New.
type Option func(*options)

type options struct {
	secrets       []string
	anyAgent      bool
	noExpiry      bool
	shortSecrets  bool
	singleUse     bool
	authenticate  auth.Authenticate
	services      func(string) bool
	bodyLimit     int64
	recordLimit   int
	rememberFor   time.Duration
	rememberCount int
	concurrency   int
	limits        auth.Limits
	origins       []string
	headers       []string
	prefixes      bool
	audit         auth.AuditSink
	clock         processors.Clock
	logger        *zap.Logger
	errs          []error
}

func newOptions(opts []Option) options {
	o := options{
		bodyLimit: 1 << 20, recordLimit: envoption.DefaultRecordLimit, rememberFor: 24 * time.Hour, rememberCount: 10_000,
		services:    func(string) bool { return false },
		concurrency: 1024,
		clock:       clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithAuthenticate sets the authentication of the chat door (default: none, every request may chat). A request for which a
// returns an error, or whose credential has expired, is answered with 401. A caller without the right auth.Write, and a
// message to a session that the caller may not use, are answered with 403. The caller's UserID
// replaces the user_id of the body; if it is empty, the door uses that of the body.
//
// a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(o *options) {
		if a == nil {
			o.invalid("WithAuthenticate: nil")
		}
		o.authenticate = a
	}
}

// WithCallbackSecrets sets the secrets that callback tokens may be signed with (default: none, every callback is rejected).
// Each must have at least token.MinSecret (32) bytes. Blank secrets are ignored. To rotate a secret, first add the new one here,
// then sign with it (tools.WithTokens), and remove the old one when all tokens signed with it have expired.
func WithCallbackSecrets(secrets ...string) Option {
	return func(o *options) { o.secrets = secrets }
}

// WithTokensOfAnyAgent also accepts callback tokens that name another agent or none (default: only those of this agent). Use
// it only if all agents that share a secret trust each other, or for tokens that name no agent.
func WithTokensOfAnyAgent() Option { return func(o *options) { o.anyAgent = true } }

// WithBoundTokens undoes an earlier WithTokensOfAnyAgent.
//
// Deprecated: callback tokens are bound to their agent by default.
func WithBoundTokens() Option { return func(o *options) { o.anyAgent = false } }

// WithTokensWithoutExpiry also accepts callback tokens that never expire, as FlightDeck does (default: they are rejected). Use it
// only while such tokens are in use: one that leaks can be used for as long as its secret is accepted.
func WithTokensWithoutExpiry() Option { return func(o *options) { o.noExpiry = true } }

// WithShortSecrets also accepts callback secrets of fewer than token.MinSecret (32) bytes, as FlightDeck does (default: New returns
// an error). New logs a warning then. Use it only until the secret is replaced: who has one token can try out short secrets,
// and then sign results for every call.
func WithShortSecrets() Option { return func(o *options) { o.shortSecrets = true } }

// WithSingleUseTokens rejects the second result for the call of a callback token with 401 (default: it is accepted, and the turn
// ignores it). A request that failed may be repeated, and one with an Idempotency-Key gets the same answer.
//
// The door remembers calls in this process only, within the bounds of WithIdempotency; another process, or this one after a
// restart, accepts a token once more. That at most one result takes effect does not depend on this option: the turn takes the
// first result of a call, whatever the number of doors, and dead-letters others.
func WithSingleUseTokens() Option { return func(o *options) { o.singleUse = true } }

// WithCallbackServices sets which services the 'reply' of a message may name (default: none). known is called from several
// goroutines. It must not be nil.
func WithCallbackServices(known func(service string) bool) Option {
	return func(o *options) {
		if known == nil {
			o.invalid("WithCallbackServices: nil")
		}
		o.services = known
	}
}

// WithBodyLimit sets the maximum size of a request body in bytes (default 1 MiB, at least 1). A longer body is answered
// with 413.
func WithBodyLimit(bytes int64) Option {
	return func(o *options) {
		if bytes < 1 {
			o.invalid("WithBodyLimit: %d, want at least 1", bytes)
		}
		o.bodyLimit = bytes
	}
}

// WithRecordLimit sets the largest record of the turn in bytes (default 1 MiB, at least 128 KiB). It must be that of
// turn.Config.RecordLimit. A message that is so large that its turn could only end in an error output, code too_large, is answered with
// 413: one of more than the limit less 80 KiB, which the turn needs for the rest of its row and for the memory of the user.
func WithRecordLimit(bytes int) Option {
	return func(o *options) {
		if bytes < envoption.MinRecordLimit {
			o.invalid("WithRecordLimit: %d, want at least %d", bytes, envoption.MinRecordLimit)
		}
		o.recordLimit = bytes
	}
}

// WithIdempotency sets for how long, and for how many keys, the answer to a request with an Idempotency-Key is remembered
// (default 24 hours and 10,000 keys). Both must be positive. The oldest keys are evicted first. Each takes some hundred
// bytes of memory.
func WithIdempotency(d time.Duration, count int) Option {
	return func(o *options) {
		if d <= 0 || count < 1 {
			o.invalid("WithIdempotency: %s and %d, want a positive time and at least 1", d, count)
		}
		o.rememberFor, o.rememberCount = d, count
	}
}

// WithCORS allows the scripts of an origin ("*" for any) to call the chat door, with cookies if the origin is named, and to
// send request headers besides Content-Type. The option may be repeated (default: none, and no other header). Name Authorization
// and Idempotency-Key here if browsers send them. Requests of pages of other origins than the named ones are answered with
// 403; with WithAuthenticate also with "*".
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
// burst of 1000 per caller; 32 concurrent requests, 20 per second and a burst of 100 per session; 64 MiB of bodies, 16 MiB
// of one caller, or twice the body limit if that is more; at least 8 KiB per second, silence of 10 s; 10,000 keys). A tool callback counts
// for the session of its token, with the limits of a caller.
func WithLimits(l auth.Limits) Option { return func(o *options) { o.limits = l } }

// WithAudit sets the receiver of events about requests that wrote, answered or were refused (default: the logger). It must
// not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(o *options) {
		if sink == nil {
			o.invalid("WithAudit: nil")
		}
		o.audit = sink
	}
}

// WithPathPrefixes makes Handler.ServeHTTP serve every path that begins with ChatPath or ToolResponsePath, as FlightDeck
// does (default: exact paths). A proxy that protects exact paths does not protect the others: /api/chatterbox is a chat
// door.
func WithPathPrefixes() Option { return func(o *options) { o.prefixes = true } }

// WithClock sets the clock for timestamps, token expiry and remembered keys (default: the system clock). It must not be
// nil.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). The content of requests is not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}
