package crewhttp

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run about an invalid agent name, option or connection setting.
var ErrConfig = errors.New("crewhttp: bad configuration")

// Option configures New and NewIndex.
type Option func(*options)

type options struct {
	prefix       string
	roles        []topics.CrewRole
	rows         int
	history      History
	text         int
	authenticate auth.Authenticate
	origins      []string
	hosts        []string
	clients      int
	queue        queueLimits
	inbound      int64
	ping, pong   time.Duration
	write        time.Duration
	bodyLimit    int64
	concurrency  int
	limits       auth.Limits
	wait         time.Duration
	audit        auth.AuditSink
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

// History limits what an Index remembers of the past events, with which clients resume. Zero fields keep their defaults.
type History struct {
	// Events and Bytes limit the events of one agent, crew or repository (default 1000 and 256 KiB).
	Events, Bytes int
	// TotalBytes limits the events of all of them (default 64 MiB). At the limit, the one that was silent for the longest
	// time loses its events.
	TotalBytes int
	// Window is how far back an Index that starts reads the events that were written before (default 1 hour).
	Window time.Duration
}

// maxWait is the longest wait of a request for an outcome.
const maxWait = 55 * time.Second

func newOptions(opts []Option) options {
	o := options{
		prefix: "/api", roles: team.Roles(), rows: 10_000, history: History{Events: 1000, Bytes: 256 << 10, TotalBytes: 64 << 20, Window: time.Hour},
		text: 64 << 10, clients: 4096, queue: queueLimits{1024, 8 << 20}, inbound: 64 << 10,
		ping: 30 * time.Second, pong: 30 * time.Second, write: 10 * time.Second,
		bodyLimit: 1 << 20, concurrency: 1024, wait: 5 * time.Second, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// invalid records an option error, which New and NewIndex return.
func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// atLeastOne records an error if a number of an option is not positive.
func (o *options) atLeastOne(option string, n int64) {
	if n < 1 {
		o.invalid("%s: %d, want at least 1", option, n)
	}
}

// WithPrefix sets the path before the paths of requests (default "/api"). The path of the WebSocket is always /ws. It begins
// with "/" and does not end with it; "" serves requests at the root.
func WithPrefix(prefix string) Option {
	return func(o *options) {
		if prefix != "" && (prefix != path.Clean(prefix) || prefix[0] != '/' || prefix == "/") {
			o.invalid("WithPrefix: %q is not a path such as /api", prefix)
		}
		o.prefix = prefix
	}
}

// WithRoles sets the roles that agents can have (default: those of package processors/crew/internal/team). It must be the list of the
// crew's group. A request to spawn an agent of another role is answered with 400. There must be at least one.
func WithRoles(roles []topics.CrewRole) Option {
	return func(o *options) {
		if len(roles) == 0 {
			o.invalid("WithRoles: none")
		}
		o.roles = slices.Clone(roles)
	}
}

// WithRowLimit sets how many agents, crews and repositories an Index has (default 10,000, at least 1). Over the limit, agents
// that have ended are forgotten, those that were changed first. If there are none, the Index logs an error and leaves new
// ones out.
func WithRowLimit(n int) Option {
	return func(o *options) {
		o.atLeastOne("WithRowLimit", int64(n))
		o.rows = n
	}
}

// WithHistory sets what an Index remembers of past events.
func WithHistory(h History) Option {
	return func(o *options) {
		if h.Events < 0 || h.Bytes < 0 || h.TotalBytes < 0 || h.Window < 0 {
			o.invalid("WithHistory: a field is negative")
			return
		}
		set(&o.history.Events, h.Events)
		set(&o.history.Bytes, h.Bytes)
		set(&o.history.TotalBytes, h.TotalBytes)
		set(&o.history.Window, h.Window)
	}
}

func set[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

// WithTextBuffer sets how many bytes of the newest text of each agent an Index keeps for clients that subscribe later (default
// 64 KiB, at least 1).
func WithTextBuffer(bytes int) Option {
	return func(o *options) {
		o.atLeastOne("WithTextBuffer", int64(bytes))
		o.text = bytes
	}
}

// WithAuthenticate sets the authentication of callers (default: none, everyone may do everything). A request for which a
// returns an error, or whose credential has ended, is answered with 401; a WebSocket is closed with StatusUnauthorized. The
// package documentation says which rights a request needs. a finds the credential in the header Authorization, see the package
// documentation for the ways in which browsers can send it. a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(o *options) {
		if a == nil {
			o.invalid("WithAuthenticate: nil")
		}
		o.authenticate = a
	}
}

// WithOrigins sets the origins of the pages of other hosts from which browsers may use the door, such as
// https://app.example.com (default: none). Their scripts may send cookies and the headers Authorization and Idempotency-Key.
// Requests and sockets of pages of other origins are answered with 403, also without WithAuthenticate; only GET requests are
// answered, without the headers that let the page read the answer.
func WithOrigins(origins ...string) Option {
	return func(o *options) {
		for _, origin := range origins {
			if !strings.HasPrefix(origin, "http://") && !strings.HasPrefix(origin, "https://") {
				o.invalid("WithOrigins: %q is not scheme://host", origin)
			}
		}
		o.origins = append([]string{}, origins...)
	}
}

// WithHosts sets the names with which clients may address the door: names or addresses without a port, which the header Host is
// compared with (default: any, with one exception). Requests to other names are answered with 403. So a page whose name is made to
// resolve to the address of the door (DNS rebinding) cannot use the door as a page of its origin.
//
// The exception: without WithAuthenticate and WithHosts, requests that arrive at a loopback address must name localhost or a
// loopback address, because a door that only this machine reaches is a target of such pages. Name the hosts if a proxy on the same
// machine keeps the header Host.
func WithHosts(hosts ...string) Option {
	return func(o *options) {
		if len(hosts) == 0 {
			o.invalid("WithHosts: none")
		}
		for _, host := range hosts {
			if host == "" || host != loopback.Host(host) {
				o.invalid("WithHosts: %q is not a name in lower case or an address, without a port", host)
			}
		}
		o.hosts = append([]string{}, hosts...)
	}
}

// WithClientLimit sets how many WebSocket clients may be connected (default 4096, at least 1). Others get status 503.
func WithClientLimit(n int) Option {
	return func(o *options) {
		o.atLeastOne("WithClientLimit", int64(n))
		o.clients = n
	}
}

// WithQueue sets how many frames, and bytes of frames, may wait for a client (default 1024 and 8 MiB, at least 1). A single
// frame may have any size. A client for which more waits is disconnected with status 1013 and a reason.
//
// An init frame with the events that follow it, and the events with which a client resumes, do not count, so a client that has
// missed many events can resume. Their number is not limited. The events of several subjects are at most as many bytes together;
// the client gets resume_gap for each further subject of which it missed events, and can resume it with another frame. The next frame
// that resumes or changes the project, and frames behind it that select what the client gets, wait until the client has read
// them (WithFrameLimit).
func WithQueue(frames, bytes int) Option {
	return func(o *options) {
		o.atLeastOne("WithQueue", int64(min(frames, bytes)))
		o.queue = queueLimits{frames, bytes}
	}
}

// WithFrameLimit sets the maximum size of the frames that clients send, in bytes (default 64 KiB, at least 1). A client that
// sends a longer one is disconnected with status 1009. Frames that wait until the client has read a replay (WithQueue) are at most
// as many bytes as 16 of the maximum size. A client that sends more is disconnected with status 1013 and a reason.
func WithFrameLimit(bytes int64) Option {
	return func(o *options) {
		o.atLeastOne("WithFrameLimit", bytes)
		o.inbound = bytes
	}
}

// WithKeepalive sets how often clients are pinged, how long they may take to answer, and how long the write of a frame may
// take (default 30 s, 30 s and 10 s; positive). A client that exceeds one is disconnected.
func WithKeepalive(ping, pong, write time.Duration) Option {
	return func(o *options) {
		if min(ping, pong, write) <= 0 {
			o.invalid("WithKeepalive: %s, %s, %s, want positive times", ping, pong, write)
		}
		o.ping, o.pong, o.write = ping, pong, write
	}
}

// WithBodyLimit sets the maximum size of the body of a request in bytes (default 1 MiB, at least 1). A longer body is answered
// with 413. So is one whose record is too large for the brokers.
func WithBodyLimit(bytes int64) Option {
	return func(o *options) {
		o.atLeastOne("WithBodyLimit", bytes)
		o.bodyLimit = bytes
	}
}

// WithConcurrency sets the maximum number of concurrent requests, without WebSockets (default 1024, at least 1). Requests that
// wait for an outcome count. Further requests get 503.
func WithConcurrency(requests int) Option {
	return func(o *options) {
		o.atLeastOne("WithConcurrency", int64(requests))
		o.concurrency = requests
	}
}

// WithLimits sets the limits of each caller and of each crew (default: 256 concurrent requests and as many sockets, 500 requests
// per second and a burst of 1000 per caller; 64 concurrent requests, 50 per second and a burst of 200 per crew; 64 MiB of bodies,
// 16 MiB of one caller, or twice the body limit if that is more; at least 8 KiB per second, silence of 10 s; 10,000 keys).
func WithLimits(l auth.Limits) Option { return func(o *options) { o.limits = l } }

// WithDecisionWait sets how long the answer to a permission request waits for the outcome (default 5 s, 0 to 55 s). After it,
// the request is answered with 202.
func WithDecisionWait(d time.Duration) Option {
	return func(o *options) {
		if d < 0 || d > maxWait {
			o.invalid("WithDecisionWait: %s, want 0 to %s", d, maxWait)
		}
		o.wait = d
	}
}

// WithAudit sets the receiver of events about requests that wrote something or were refused (default: the logger). It must
// not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(o *options) {
		if sink == nil {
			o.invalid("WithAudit: nil")
		}
		o.audit = sink
	}
}

// WithClock sets the clock for limits, waits, the delay of text and the end of credentials (default: the system clock). It
// must not be nil. Give New and NewIndex the same clock.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). The contents of requests and events are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}
