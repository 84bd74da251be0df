package invoke

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
)

// Option changes what New makes.
type Option func(*rules)

type rules struct {
	authenticate Authenticate
	resolve      func(context.Context, Request) (Request, error)
	capability   *Capability
	bodyLimit    int64
	batchLimit   int
	calls        int
	keepalive    time.Duration
	writeTimeout time.Duration
	version      string
	origin       string
	allowed      string
	fold         []fold.Option
	random       io.Reader
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

func newRules(opts []Option) (rules, error) {
	r := rules{
		bodyLimit: 1 << 20, batchLimit: 64 << 20, calls: 1024, keepalive: 15 * time.Second,
		writeTimeout: 30 * time.Second, version: "unknown", random: rand.Reader, clock: clock.System(),
		logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	return r, errors.Join(r.errs...)
}

func (r *rules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrDoor}, args...)...))
}

// Authenticate says who makes a request. An error refuses it with 401, without telling why; an *Error with its status
// and text. It is called before the body is read, from several goroutines, and must not read the body.
type Authenticate func(r *http.Request) (Caller, error)

// WithAuthenticate sets who may come in (default: anyone).
func WithAuthenticate(a Authenticate) Option { return func(r *rules) { r.authenticate = a } }

// WithResolve sets what a request goes through before the agent, unless its flag resolve is false: it may fetch what
// the request only names. Default: nothing.
func WithResolve(resolve func(context.Context, Request) (Request, error)) Option {
	return func(r *rules) { r.resolve = resolve }
}

// WithCapability sets what the agent can do, over what it declares itself.
func WithCapability(c Capability) Option {
	return func(r *rules) {
		if c.Shape > StreamOnly {
			r.refuse("WithCapability: unknown shape %d", c.Shape)
		}
		r.capability = &c
	}
}

// WithBodyLimit sets how many bytes of a body are read (default 1 MiB); a longer one is answered with 413.
func WithBodyLimit(bytes int64) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.refuse("WithBodyLimit: %d, want at least 1", bytes)
		}
		r.bodyLimit = bytes
	}
}

// WithBatchLimit sets how many bytes a turn that is answered as a batch may hold (default 64 MiB); one that outgrows it
// is answered with an error. Streams hold nothing.
func WithBatchLimit(bytes int) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.refuse("WithBatchLimit: %d, want at least 1", bytes)
		}
		r.batchLimit = bytes
	}
}

// WithConcurrency sets how many requests are answered at a time (default 1024); more get 503.
func WithConcurrency(requests int) Option {
	return func(r *rules) {
		if requests < 1 {
			r.refuse("WithConcurrency: %d, want at least 1", requests)
		}
		r.calls = requests
	}
}

// WithKeepalive sets after how much silence a stream shows that it lives (default 15 s); zero or less: never.
func WithKeepalive(silence time.Duration) Option { return func(r *rules) { r.keepalive = silence } }

// WithWriteTimeout sets how long a client may take to accept what is written at once (default 30 s); a slower one is
// cut off. Zero: as long as the server lets it.
func WithWriteTimeout(d time.Duration) Option {
	return func(r *rules) {
		if d < 0 {
			r.refuse("WithWriteTimeout: %s, want no negative time", d)
		}
		r.writeTimeout = d
	}
}

// WithVersion sets the header x-ag-version of answers (default "unknown").
func WithVersion(version string) Option { return func(r *rules) { r.version = version } }

// WithCORS lets scripts of an origin ("*" for any) call the door from a browser, with these headers beside those of
// the door, and read its headers (default: none may).
func WithCORS(origin string, headers ...string) Option {
	return func(r *rules) {
		if origin == "" {
			r.refuse("WithCORS: no origin")
		}
		r.origin = origin
		r.allowed = strings.Join(append([]string{
			"Content-Type", HeaderLastEvent, headerIdempotency, HeaderSession, HeaderTranscript, HeaderControl,
			HeaderEmbeds, HeaderFormat, HeaderTrace, HeaderSpan, headerParent, headerBaggage,
		}, headers...), ", ")
	}
}

// WithStrictFold makes a malformed event fail a batch (default: it is left out). Streams pass it on in either case.
func WithStrictFold() Option { return func(r *rules) { r.fold = []fold.Option{fold.Strict()} } }

// WithRandom sets what trace, span and session ids are drawn from (default: the system's). It is read one request at a
// time.
func WithRandom(source io.Reader) Option {
	return func(r *rules) {
		if source == nil {
			r.refuse("WithRandom: nil")
			return
		}
		r.random = source
	}
}

// WithClock sets the clock that keepalives go by (default: the system's).
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.refuse("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). Nothing of a request or an event is logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.refuse("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
