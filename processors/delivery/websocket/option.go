package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// ErrConfig is wrapped by everything that New and Run refuse.
var ErrConfig = errors.New("websocket: bad configuration")

// Option changes what New makes.
type Option func(*rules)

type rules struct {
	authenticate Authenticate
	origins      []string
	clients      int
	queue        limits
	inbound      int64
	ping, pong   time.Duration
	write        time.Duration
	replay       Replay
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

// limits bound a number of frames.
type limits struct{ frames, bytes int }

func (l limits) hold(frames, bytes int) bool {
	return frames <= l.frames && (bytes <= l.bytes || frames <= 1)
}

// Replay is what clients that come back can be given. Fields that are zero keep their defaults.
type Replay struct {
	// Frames and Bytes bound what is remembered of a session, and what is read back for it (256, 1 MiB).
	Frames, Bytes int
	// Sessions is how many sessions are remembered whose last client has gone (1000), TotalBytes what all sessions
	// together may take (64 MiB).
	Sessions, TotalBytes int
	// Window is how long ago the last frame may have been that a client got, where it is read back (15 minutes).
	Window time.Duration
}

func defaults() rules {
	return rules{
		clients: 10_000, queue: limits{256, 8 << 20}, inbound: 4 << 10,
		ping: 30 * time.Second, pong: 10 * time.Second, write: 10 * time.Second,
		replay: Replay{Frames: 256, Bytes: 1 << 20, Sessions: 1000, TotalBytes: 64 << 20, Window: 15 * time.Minute},
		clock:  clock.System(), logger: zap.NewNop(),
	}
}

func (r *rules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// Authenticate says who asks for a connection; an error refuses it with 401, without telling why. It is called from
// several goroutines.
type Authenticate func(r *http.Request) (Caller, error)

// Caller is who has a connection.
type Caller struct {
	// MaySubscribe reports whether the caller may see a session; where it may not, the answer is a "refused" frame. Nil:
	// any.
	MaySubscribe func(sessionID string) bool
}

// WithAuthenticate sets who may connect (default: anyone, as in FlightDeck).
func WithAuthenticate(a Authenticate) Option {
	return func(r *rules) { r.authenticate = a }
}

// WithOrigins sets from which pages browsers may connect, besides those of the server's own host: host patterns as
// path.Match has them, or scheme://host patterns (default: any, as in FlightDeck).
func WithOrigins(patterns ...string) Option {
	return func(r *rules) {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				r.refuse("WithOrigins: %q is no pattern", p)
			}
		}
		r.origins = append([]string{}, patterns...)
	}
}

// WithClientLimit sets how many clients there may be (default 10,000); others get 503.
func WithClientLimit(n int) Option {
	return func(r *rules) {
		if n < 1 {
			r.refuse("WithClientLimit: %d, want at least 1", n)
		}
		r.clients = n
	}
}

// WithQueue sets how many frames, and bytes of them, may wait for a client that reads slowly (default 256, 8 MiB). One
// that exceeds either is dropped.
func WithQueue(frames, bytes int) Option {
	return func(r *rules) {
		if frames < 1 || bytes < 1 {
			r.refuse("WithQueue: %d and %d, want at least 1", frames, bytes)
		}
		r.queue = limits{frames, bytes}
	}
}

// WithFrameLimit sets how long a frame of a client may be (default 4 KiB); a longer one closes it with 1009.
func WithFrameLimit(bytes int64) Option {
	return func(r *rules) {
		if bytes < 1 {
			r.refuse("WithFrameLimit: %d, want at least 1", bytes)
		}
		r.inbound = bytes
	}
}

// WithKeepalive sets how often clients are pinged, how long they may take to answer, and how long the write of a frame
// may take (default 30 s, 10 s, 10 s). Who takes longer is cut off.
func WithKeepalive(every, answer, write time.Duration) Option {
	return func(r *rules) {
		if every <= 0 || answer <= 0 || write <= 0 {
			r.refuse("WithKeepalive: %s, %s and %s, want positive times", every, answer, write)
		}
		r.ping, r.pong, r.write = every, answer, write
	}
}

// WithReplay sets what clients that come back can be given.
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
				r.refuse("WithReplay: %s is %d, want at least 0", n.name, n.set)
			}
			if n.set > 0 {
				*n.to = n.set
			}
		}
		if replay.Window < 0 {
			r.refuse("WithReplay: Window is %s, want at least 0", replay.Window)
		}
		if replay.Window > 0 {
			r.replay.Window = replay.Window
		}
	}
}

// WithClock sets the clock by which it is judged how long a client was away (default: the system's). Pings and writes
// do not go by it.
func WithClock(c processors.Clock) Option {
	return func(r *rules) {
		if c == nil {
			r.refuse("WithClock: nil")
			return
		}
		r.clock = c
	}
}

// WithLogger sets the logger (default: none). Nothing of a record or a frame is logged.
func WithLogger(l *zap.Logger) Option {
	return func(r *rules) {
		if l == nil {
			r.refuse("WithLogger: nil")
			return
		}
		r.logger = l
	}
}
