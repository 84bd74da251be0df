// Package teams is the adapter for Microsoft Teams: activities of the Bot Framework
// (https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-concepts) in both directions.
package teams

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the Channel of the adapter's origins.
const Channel = "teams"

// The addresses of the public cloud,
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication.
const (
	DefaultServiceURL  = "https://smba.trafficmanager.net"
	DefaultMetadataURL = "https://login.botframework.com/v1/.well-known/openidconfiguration"
	// DefaultTokenURL is for bots of several tenants. The URL of a bot of one tenant has its ID instead of botframework.com.
	DefaultTokenURL = "https://login.microsoftonline.com/botframework.com/oauth2/v2.0/token"
	DefaultIssuer   = "https://api.botframework.com"
	DefaultScope    = "https://api.botframework.com/.default"
)

// ErrConfig is wrapped by the errors of New. They do not quote secrets.
var ErrConfig = errors.New("teams: bad configuration")

// Config describes an account: a bot. Every URL must have HTTPS, or be of this host.
type Config struct {
	// Account is the name of the account. Required.
	Account string
	// AppID and Secret are the bot's Microsoft app ID and client secret. Required.
	AppID, Secret string
	// Tenants are the IDs of the tenants whose activities are accepted (default: all in which the bot is installed).
	Tenants []string
	// ServiceURLs are the schemes and hosts to which answers may be sent (default DefaultServiceURL). An activity names the URL
	// for its answers; activities with another one are refused, and no other host is dialed.
	ServiceURLs []string
	// MetadataURL is the OpenID metadata of the tokens of activities (default DefaultMetadataURL). Its jwks_uri must be on the same
	// host. Issuer is their issuer (default DefaultIssuer).
	MetadataURL, Issuer string
	// TokenURL is where the token for answers comes from (default DefaultTokenURL), and Scope what it is for (default DefaultScope).
	TokenURL, Scope string
	// Timeout is how long a request may take (default 30 s).
	Timeout time.Duration
	// Clock is the clock of tokens (default: the system clock).
	Clock processors.Clock
}

// limit is the longest text in UTF-16 units. Teams limits a message, in UTF-16 and with everything in it, and has raised the limit
// from 28 KB over time (https://learn.microsoft.com/microsoftteams/platform/bots/how-to/format-your-bot-messages); this text and its
// buttons are below the lowest of the limits.
const limit = 12000

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	config   Config
	client   *http.Client
	door     *platform.Door
	services []*url.URL
	verify   *verifier
	tokens   *tokens
	now      func() time.Time
}

var _ adapter.Adapter = (*Adapter)(nil)

// New returns the adapter of an account. It makes no request. Call Close when it is no longer used. Its error wraps ErrConfig.
func New(c Config) (*Adapter, error) {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	for _, required := range []struct{ name, value string }{{"Account", c.Account}, {"AppID", c.AppID}, {"Secret", c.Secret}} {
		if strings.TrimSpace(required.value) == "" {
			invalid("no %s", required.name)
		}
	}
	if len(c.ServiceURLs) == 0 {
		c.ServiceURLs = []string{DefaultServiceURL}
	}
	a := &Adapter{}
	for _, service := range c.ServiceURLs {
		base, err := platform.BaseURL(service)
		u, parseErr := url.Parse(base)
		if err != nil || parseErr != nil || u.Path != "" {
			invalid("ServiceURLs: want a scheme and a host")
			continue
		}
		a.services = append(a.services, u)
	}
	for _, u := range []struct {
		name  string
		value *string
		or    string
	}{{"MetadataURL", &c.MetadataURL, DefaultMetadataURL}, {"TokenURL", &c.TokenURL, DefaultTokenURL}} {
		if *u.value == "" {
			*u.value = u.or
		}
		if _, err := platform.BaseURL(*u.value); err != nil {
			invalid("%s: %w", u.name, err)
		}
	}
	if c.Timeout < 0 {
		invalid("Timeout must not be negative")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.Issuer == "" {
		c.Issuer = DefaultIssuer
	}
	if c.Scope == "" {
		c.Scope = DefaultScope
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	a.config, a.now, a.client = c, c.Clock.Now, platform.Client(c.Timeout)
	a.door = platform.NewDoor(platform.DoorConfig{})
	a.verify = newVerifier(c, a.client, a.now)
	a.tokens = newTokens(c, a.client, a.now)
	return a, nil
}

// Channel implements adapter.Adapter.
func (a *Adapter) Channel() string { return Channel }

// Traits implements adapter.Adapter. Only channels of teams have threads; elsewhere, the thread of an origin is ignored.
func (a *Adapter) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Markdown, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true}
}

// Close closes idle connections.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }

// allowed returns the service URL of an activity if it is of a configured service.
func (a *Adapter) allowed(service string) (*url.URL, bool) {
	u, err := url.Parse(service)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawPath != "" || u.Opaque != "" {
		return nil, false
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, false
		}
	}
	for _, s := range a.services {
		if u.Scheme == s.Scheme && strings.EqualFold(u.Host, s.Host) {
			return u, true
		}
	}
	return nil, false
}
