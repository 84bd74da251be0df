package turn

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// DoorOption changes what NewDoors makes.
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

func (r *doorRules) refuse(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: "+format, append([]any{ErrDoors}, args...)...))
}

// Authenticate says who makes a request to the chat door; an error refuses it with 401, without telling why. It is
// called before the body is read, from several goroutines, and must not read the body.
type Authenticate func(r *http.Request) (Caller, error)

// Caller is who makes a request.
type Caller struct {
	// UserID stands in for the user_id of the body; empty leaves that as it is.
	UserID string
	// MayWrite reports whether the caller may write to a session; where it may not, the answer is 403. Nil: to any.
	MayWrite func(sessionID string) bool
}

// WithAuthenticate sets who may chat (default: anyone).
func WithAuthenticate(a Authenticate) DoorOption {
	return func(r *doorRules) { r.authenticate = a }
}

// WithCallbackSecrets sets the secrets that callback tokens may be signed with (default: none, which refuses all). More
// than one is for changing a secret while tokens are out. Blank ones do not count.
func WithCallbackSecrets(secrets ...string) DoorOption {
	return func(r *doorRules) { r.secrets = secrets }
}

// WithBoundTokens refuses callback tokens that were not minted for this agent (default: they are not looked at, as
// FlightDeck does not): needed where agents share a secret and do not trust each other.
func WithBoundTokens() DoorOption { return func(r *doorRules) { r.bound = true } }

// WithCallbackServices sets which services the 'reply' of a message may name (default: none). It is asked from several
// goroutines.
func WithCallbackServices(known func(service string) bool) DoorOption {
	return func(r *doorRules) {
		if known == nil {
			r.refuse("WithCallbackServices: nil")
		}
		r.services = known
	}
}

// WithBodyLimit sets how many bytes of a body are read (default 1 MiB); a longer one is answered with 413.
func WithBodyLimit(bytes int64) DoorOption {
	return func(r *doorRules) {
		if bytes < 1 {
			r.refuse("WithBodyLimit: %d, want at least 1", bytes)
		}
		r.bodyLimit = bytes
	}
}

// WithIdempotency sets for how long an Idempotency-Key gets the answer that it got first, and how many keys are
// remembered (default 24 hours, 10,000; the oldest go first). Each takes some hundred bytes.
func WithIdempotency(window time.Duration, count int) DoorOption {
	return func(r *doorRules) {
		if window <= 0 || count < 1 {
			r.refuse("WithIdempotency: %s and %d, want a positive time and at least 1", window, count)
		}
		r.window, r.remembered = window, count
	}
}

// WithCORS sets which origin may call the chat door from a browser, and with which headers (default: any, with
// Content-Type). Browsers that send an Authorization or Idempotency-Key header need it named here.
func WithCORS(origin string, headers ...string) DoorOption {
	return func(r *doorRules) {
		if origin == "" {
			r.refuse("WithCORS: no origin")
		}
		r.origin, r.allowed = origin, strings.Join(append([]string{"Content-Type"}, headers...), ", ")
	}
}

// WithDoorClock sets the clock of timestamps, tokens and remembered keys (default: the system's).
func WithDoorClock(c processors.Clock) DoorOption {
	return func(r *doorRules) {
		if c == nil {
			r.refuse("WithDoorClock: nil")
			return
		}
		r.clock = c
	}
}

// WithDoorLogger sets the logger (default: none). Nothing of a request is logged.
func WithDoorLogger(l *zap.Logger) DoorOption {
	return func(r *doorRules) {
		if l == nil {
			r.refuse("WithDoorLogger: nil")
			return
		}
		r.logger = l
	}
}
