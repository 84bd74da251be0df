package jwt

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

// ErrConfig is wrapped by the errors of New about arguments and fields of a Config, which they name.
var ErrConfig = errors.New("jwt: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Algorithms are the allowed signature algorithms (default RS256, ES256 and EdDSA): those of the identity provider, of RS256,
	// RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA.
	Algorithms []string
	// UserClaim is the claim with the user (default sub): a string of printable characters, at most 256 bytes.
	UserClaim string
	// Sessions are the sessions of callers whose tokens do not say (default: those that match {user}:*). They have no effect with
	// SessionsClaim.
	Sessions auth.Sessions
	// SessionsClaim is a claim with the caller's sessions: a pattern of auth.ParseSessions, or an array of them (default: none). A
	// token without the claim, or with an unusable pattern, is rejected.
	SessionsClaim string
	// Rights are the rights of callers whose tokens do not say (default: all but auth.Control). They have no effect with RightsClaim.
	Rights auth.Rights
	// RightsClaim is a claim with the caller's rights: names of auth.ParseRights, as an array or, like scope, separated by spaces
	// (default: none). Other names are ignored. A token without the claim, or with no right in it, is rejected.
	RightsClaim string
	// Leeway is how far the clocks of the identity provider and of this host may differ (default 30 s, up to 5 minutes). A caller
	// expires this long after exp.
	Leeway time.Duration
	// HTTPClient reads a URL, for example one that trusts a private certificate authority (default: a client with the system's
	// certificates). Its redirect policy is not used.
	HTTPClient *http.Client
	// Clock is that by which tokens expire and keys are read again (default: the system's).
	Clock auth.Clock
	// Logger logs changes of the keys and failures to read them (default: nothing). Tokens are not logged.
	Logger *zap.Logger
}

// usable are the algorithms that Config.Algorithms accepts.
var usable = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// complete fills the fields that are zero, and checks the others.
func (c *Config) complete(check *bounds.Check) {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{"RS256", "ES256", "EdDSA"}
	}
	if slices.ContainsFunc(c.Algorithms, func(name string) bool { return !slices.Contains(usable, name) }) {
		check.Wrong("Algorithms", "has one that is not of %s", strings.Join(usable, ", "))
	}
	if c.UserClaim == "" {
		c.UserClaim = "sub"
	}
	if c.Sessions.IsZero() {
		c.Sessions, _ = auth.ParseSessions("{user}:*") // valid
	}
	if c.Rights == 0 {
		c.Rights = auth.Read | auth.Write | auth.Answer
	}
	bounds.Between(check, "Leeway", &c.Leeway, 30*time.Second, 1, 5*time.Minute)
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{}
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}
