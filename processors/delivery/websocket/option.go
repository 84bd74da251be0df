package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid agent name, option or connection setting.
var ErrConfig = errors.New("websocket: bad configuration")

// Option sets a property of the server that New returns. New returns an error for every invalid value.
type Option func(*rules)

type rules struct {
	authenticate auth.Authenticate
	origins      []string
	clients      int
	limits       auth.Limits
	audit        auth.AuditSink
	queue        limits
	inbound      int64
	ping, pong   time.Duration
	write        time.Duration
	replay       Replay
	resumeKeys   [][]byte
	gates        Gates                  // nil: none
	operators    func(auth.Caller) bool // nil: none
	everyone     bool
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

// limits bounds the number and the total size of frames.
type limits struct{ frames, bytes int }

// allow reports whether the limits allow so many frames and bytes. A single frame may have any size.
func (l limits) allow(frames, bytes int) bool {
	return frames <= l.frames && (bytes <= l.bytes || frames <= 1)
}

// Replay limits what clients that resume can receive. Zero fields keep their defaults.
type Replay struct {
	// Frames and Bytes limit the frames of one session in memory, and the records of one read from the topics (default 256
	// and 1 MiB).
	Frames, Bytes int
	// Sessions limits the sessions in memory that have no clients (default 1000). TotalBytes limits the frames of all
	// sessions in memory (default 64 MiB). At a limit, the caller whose sessions use the most loses its oldest.
	Sessions, TotalBytes int
	// MaxAge limits the age of the last frame that a client received, if its missed frames are read from the topics (default
	// 15 minutes).
	MaxAge time.Duration
}

func defaults() rules {
	return rules{
		clients: 10_000, queue: limits{256, 8 << 20}, inbound: 4 << 10,
		ping: 30 * time.Second, pong: 10 * time.Second, write: 10 * time.Second,
		replay: Replay{Frames: 256, Bytes: 1 << 20, Sessions: 1000, TotalBytes: 64 << 20, MaxAge: 15 * time.Minute},
		clock:  clock.System(), logger: zap.NewNop(),
	}
}

// invalid records an option error, which New returns.
func (r *rules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithAuthenticate sets the authentication of clients (default: none, as in FlightDeck). A connection request for which a
// returns an error is answered with 401, and the request of a caller without the right auth.Read with 403. A connection is
// closed with StatusCredentialExpired when its credential expires or is revoked. A client that subscribes to a session that
// its caller may not use receives a "refused" frame. The caller's UserID is not used. a must not be
// nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(r *rules) {
		if a == nil {
			r.invalid("WithAuthenticate: nil")
		}
		r.authenticate = a
	}
}

// WithOrigins sets the origins of the pages from which browsers may connect, in addition to the server's own host: patterns
// of path.Match for host or scheme://host, "*" for all (default: none). Others get 403.
//
// Without WithAuthenticate, a connection that arrives at a loopback address must name this machine, or a host of the patterns,
// otherwise it gets 403: the page of any site can give this machine another name.
func WithOrigins(patterns ...string) Option {
	return func(r *rules) {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				r.invalid("WithOrigins: %q is not a pattern", p)
			}
		}
		r.origins = append([]string{}, patterns...)
	}
}

// WithClientLimit sets how many clients may be connected (default 10,000, at least 1). Others get status 503.
func WithClientLimit(n int) Option {
	return func(r *rules) {
		if n < 1 {
			r.invalid("WithClientLimit: %d, want at least 1", n)
		}
		r.clients = n
	}
}

// WithLimits sets the limits of each caller and of each session (default: 1000 sockets, 100 new ones per second and a burst
// of 1000 per caller; 100 sockets, 20 subscriptions per second and a burst of 200 per session; 10,000 keys). A connection
// over a limit of the caller gets 429. A subscription over a limit of the session gets a "refused" frame. The limits of bodies
// have no effect.
func WithLimits(l auth.Limits) Option { return func(r *rules) { r.limits = l } }

// WithAudit sets the receiver of events about connections and subscriptions that were refused (default: the logger). It must
// not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(r *rules) {
		if sink == nil {
			r.invalid("WithAudit: nil")
		}
		r.audit = sink
	}
}

// WithQueue sets how many frames and bytes may be queued for a client that reads slowly (default 256 and 8 MiB, both at least
// 1). A client that exceeds either is disconnected with status 1013.
func WithQueue(frames, bytes int) Option {
	return func(r *rules) {
		if frames < 1 || bytes < 1 {
			r.invalid("WithQueue: %d and %d, want at least 1", frames, bytes)
		}
		r.queue = limits{frames, bytes}
	}
}

// WithFrameLimit sets the largest frame of a client in bytes (default 4 KiB, at least 1). A client that sends a larger one is
// disconnected with status 1009.
func WithFrameLimit(bytes int64) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.invalid("WithFrameLimit: %d, want at least 1", bytes)
		}
		r.inbound = bytes
	}
}

// WithKeepalive sets how often clients are pinged, how long they may take to answer, and how long the write of a frame may
// take (default 30 s, 10 s and 10 s, all positive). A client that exceeds a limit is disconnected.
func WithKeepalive(every, answer, write time.Duration) Option {
	return func(r *rules) {
		if every <= 0 || answer <= 0 || write <= 0 {
			r.invalid("WithKeepalive: %s, %s and %s, want durations above zero", every, answer, write)
		}
		r.ping, r.pong, r.write = every, answer, write
	}
}

// WithReplay limits what clients that resume can receive.
func WithReplay(replay Replay) Option {
	return func(r *rules) {
		for _, n := range []struct {
			name string
			set  int
			to   *int
		}{
			{"Frames", replay.Frames, &r.replay.Frames},
			{"Bytes", replay.Bytes, &r.replay.Bytes},
			{"Sessions", replay.Sessions, &r.replay.Sessions},
			{"TotalBytes", replay.TotalBytes, &r.replay.TotalBytes},
		} {
			if n.set < 0 {
				r.invalid("WithReplay: %s is %d, want at least 0", n.name, n.set)
			}
			if n.set > 0 {
				*n.to = n.set
			}
		}
		if replay.MaxAge < 0 {
			r.invalid("WithReplay: MaxAge is %s, want at least 0", replay.MaxAge)
		}
		if replay.MaxAge > 0 {
			r.replay.MaxAge = replay.MaxAge
		}
	}
}

// WithResumeKeys sets the keys with which event IDs are signed, each of at least 32 random bytes (default: a random key of
// this server). The first key signs; event IDs that any of them has signed are accepted, so that a key can be replaced
// without refusing the clients that hold older IDs. Give all servers of an agent the same keys: a client cannot resume by an
// event ID of a server with other keys, and receives "complete":false instead.
func WithResumeKeys(keys ...[]byte) Option {
	return func(r *rules) {
		r.resumeKeys = nil
		for _, key := range keys {
			if len(key) < minResumeKey {
				r.invalid("WithResumeKeys: a key of %d bytes, want at least %d", len(key), minResumeKey)
			}
			r.resumeKeys = append(r.resumeKeys, bytes.Clone(key))
		}
	}
}

// WithClock sets the clock for Replay.MaxAge and for the expiry of credentials (default: the system clock). Pings and write
// timeouts do not use this clock.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.invalid("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). The contents of records and frames are never logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.invalid("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
