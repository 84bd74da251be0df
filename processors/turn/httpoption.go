package turn

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// DoorOption configures NewDoors.
type DoorOption func(*doorRules)

type doorRules struct {
	secrets         []string
	bound           bool
	authenticate    Authenticate
	services        func(string) bool
	bodyLimit       int64
	window          time.Duration
	remembered      int
	origin, allowed string
	clock           processors.Clock
	logger          *zap.Logger
	errs            []error
}

const (
	defaultBodyLimit  = 1 << 20
	defaultWindow     = 24 * time.Hour
	defaultRemembered = 10_000
)

func (r *doorRules) invalid(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrDoors}, args...)...))
}

// Authenticate returns the caller of a request to the chat door. A request for which it returns an error is answered with
// 401; the error is not part of the answer. Authenticate is called from several goroutines, before the body is read, and
// must not read it.
type Authenticate func(r *http.Request) (Caller, error)

// Caller is the authenticated sender of a request.
type Caller struct {
	// UserID replaces the user_id of the body. If it is empty, that of the body is used.
	UserID string
	// MayWrite reports whether the caller may write to a session. If not, the request is answered with 403. Nil allows
	// every session.
	MayWrite func(sessionID string) bool
}

// WithAuthenticate sets the authentication of the chat door (default: none, every request may chat).
func WithAuthenticate(a Authenticate) DoorOption {
	return func(r *doorRules) { r.authenticate = a }
}

// WithCallbackSecrets sets the secrets that callback tokens may be signed with (default: none, every callback is rejected).
// To rotate a secret, set the old and the new one until all tokens signed with the old one have expired. Blank secrets are
// ignored.
func WithCallbackSecrets(secrets ...string) DoorOption {
	return func(r *doorRules) { r.secrets = secrets }
}

// WithBoundTokens rejects callback tokens that were not minted for this agent (default: the agent of a token is not
// checked, as in FlightDeck). Use it if agents share a secret but do not trust each other.
func WithBoundTokens() DoorOption { return func(r *doorRules) { r.bound = true } }

// WithCallbackServices sets which services the 'reply' of a message may name (default: none). known is called from several
// goroutines. It must not be nil.
func WithCallbackServices(known func(service string) bool) DoorOption {
	return func(r *doorRules) {
		if known == nil {
			r.invalid("WithCallbackServices: nil")
		}
		r.services = known
	}
}

// WithBodyLimit sets the maximum size of a request body in bytes (default 1 MiB, at least 1). A longer body is answered
// with 413.
func WithBodyLimit(bytes int64) DoorOption {
	return func(r *doorRules) {
		if bytes < 1 {
			r.invalid("WithBodyLimit: %d, want at least 1", bytes)
		}
		r.bodyLimit = bytes
	}
}

// WithIdempotency sets for how long, and for how many keys, the answer to a request with an Idempotency-Key is remembered
// (default 24 hours and 10,000 keys). Both must be positive. The oldest keys are evicted first. Each takes some hundred
// bytes of memory.
func WithIdempotency(window time.Duration, count int) DoorOption {
	return func(r *doorRules) {
		if window <= 0 || count < 1 {
			r.invalid("WithIdempotency: %s and %d, want a positive time and at least 1", window, count)
		}
		r.window, r.remembered = window, count
	}
}

// WithCORS sets the origin from which browsers may call the chat door, and the request headers that they may send besides
// Content-Type (default: any origin, no other header). Name Authorization and Idempotency-Key here if browsers send them.
// The origin must not be empty.
func WithCORS(origin string, headers ...string) DoorOption {
	return func(r *doorRules) {
		if origin == "" {
			r.invalid("WithCORS: no origin")
		}
		r.origin, r.allowed = origin, strings.Join(append([]string{"Content-Type"}, headers...), ", ")
	}
}

// WithDoorClock sets the clock for timestamps, token expiry and remembered keys (default: the system clock). It must not be
// nil.
func WithDoorClock(c processors.Clock) DoorOption {
	return func(r *doorRules) {
		if c == nil {
			r.invalid("WithDoorClock: nil")
			return
		}
		r.clock = c
	}
}

// WithDoorLogger sets the logger (default: none). The content of requests is not logged. It must not be nil.
func WithDoorLogger(l *zap.Logger) DoorOption {
	return func(r *doorRules) {
		if l == nil {
			r.invalid("WithDoorLogger: nil")
			return
		}
		r.logger = l
	}
}
