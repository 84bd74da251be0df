package jwt

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

// ErrConfig is wrapped by the errors of New about arguments and options.
var ErrConfig = errors.New("jwt: bad configuration")

// Option configures New.
type Option func(*options)

type options struct {
	algorithms    []string
	userClaim     string
	sessionsClaim string
	sessions      auth.Sessions
	rightsClaim   string
	rights        auth.Rights
	leeway        time.Duration
	client        *http.Client
	clock         auth.Clock
	logger        *zap.Logger
	errs          []error
}

func newOptions(opts []Option) options {
	own, _ := auth.ParseSessions("{user}:*")
	o := options{
		algorithms: []string{"RS256", "ES256", "EdDSA"}, userClaim: "sub", sessions: own,
		rights: auth.Read | auth.Write | auth.Answer, leeway: 30 * time.Second, client: &http.Client{},
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

// usable are the algorithms that WithAlgorithms accepts.
var usable = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// WithAlgorithms sets the allowed signature algorithms (default RS256, ES256 and EdDSA): those of the identity provider,
// of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA.
func WithAlgorithms(names ...string) Option {
	return func(o *options) {
		for _, name := range names {
			if !slices.Contains(usable, name) {
				o.invalid("WithAlgorithms: an algorithm is not of %s", strings.Join(usable, ", "))
			}
		}
		if len(names) == 0 {
			o.invalid("WithAlgorithms: none")
		}
		o.algorithms = slices.Clone(names)
	}
}

// WithUserClaim sets the claim with the user (default sub): a string of printable characters, at most 256 bytes.
func WithUserClaim(name string) Option {
	return func(o *options) {
		if name == "" {
			o.invalid("WithUserClaim: no name")
		}
		o.userClaim = name
	}
}

// WithSessions sets the sessions of callers whose tokens do not say (default: those that match {user}:*). It has no effect
// with WithSessionsClaim.
func WithSessions(s auth.Sessions) Option { return func(o *options) { o.sessions = s } }

// WithSessionsClaim sets a claim with the caller's sessions: a pattern of auth.ParseSessions, or an array of them (default:
// none). A token without the claim, or with an unusable pattern, is rejected.
func WithSessionsClaim(name string) Option {
	return func(o *options) {
		if name == "" {
			o.invalid("WithSessionsClaim: no name")
		}
		o.sessionsClaim = name
	}
}

// WithRights sets the rights of callers whose tokens do not say (default: all but auth.Control). Zero means all rights. It
// has no effect with WithRightsClaim.
func WithRights(r auth.Rights) Option { return func(o *options) { o.rights = r } }

// WithRightsClaim sets a claim with the caller's rights: names of auth.ParseRights, as an array or, like scope, separated by
// spaces (default: none). Other names are ignored. A token without the claim, or with no right in it, is rejected.
func WithRightsClaim(name string) Option {
	return func(o *options) {
		if name == "" {
			o.invalid("WithRightsClaim: no name")
		}
		o.rightsClaim = name
	}
}

// WithLeeway sets how far the clocks of the identity provider and of this host may differ (default 30 s, 0 to 5 minutes). A
// caller expires this long after exp.
func WithLeeway(d time.Duration) Option {
	return func(o *options) {
		if d < 0 || d > 5*time.Minute {
			o.invalid("WithLeeway: %s, want 0 to 5 minutes", d)
		}
		o.leeway = d
	}
}

// WithHTTPClient sets the client that reads a URL, for example one that trusts a private certificate authority (default: a
// client with the system's certificates). Its redirect policy is not used. It must not be nil.
func WithHTTPClient(c *http.Client) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithHTTPClient: nil")
			return
		}
		o.client = c
	}
}

// WithClock sets the clock by which tokens expire and keys are read again (default: the system clock). It must not be nil.
func WithClock(c auth.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger for changes of the keys and failures to read them (default: none). Tokens are not logged. It
// must not be nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}
