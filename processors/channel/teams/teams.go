// Package teams is the adapter for Microsoft Teams: activities of the Bot Framework
// (https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-concepts) in both directions.
package teams

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
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
	defaultServiceURL  = "https://smba.trafficmanager.net"
	defaultMetadataURL = "https://login.botframework.com/v1/.well-known/openidconfiguration"
	defaultTokenURL    = "https://login.microsoftonline.com/botframework.com/oauth2/v2.0/token"
	defaultIssuer      = "https://api.botframework.com"
	defaultScope       = "https://api.botframework.com/.default"
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
	// ServiceURLs are the schemes and hosts to which answers may be sent (default https://smba.trafficmanager.net). An activity names the URL
	// for its answers; activities with another one are refused, and no other host is dialed.
	ServiceURLs []string
	// MetadataURL is the OpenID metadata of the tokens of activities, and Issuer their issuer (default: those of the public cloud). Its
	// jwks_uri must be on the same host.
	MetadataURL, Issuer string
	// TokenURL is where the token for answers comes from, and Scope what it is for (default: those of the public cloud for bots of several
	// tenants). The URL of a bot of one tenant is https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token.
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

type base = platform.Base

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	base
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
	check := platform.NewCheck(c.Account, &c.Clock, nil)
	for field, value := range map[string]string{"AppID": c.AppID, "Secret": c.Secret} {
		if strings.TrimSpace(value) == "" {
			check.Wrong(field, "is empty")
		}
	}
	if len(c.ServiceURLs) == 0 {
		c.ServiceURLs = []string{defaultServiceURL}
	}
	a := &Adapter{}
	for _, service := range c.ServiceURLs {
		u, err := url.Parse(check.URL("ServiceURLs", service))
		if err != nil || u.Path != "" {
			check.Wrong("ServiceURLs", "have one that is not a scheme and a host")
			continue
		}
		a.services = append(a.services, u)
	}
	c.MetadataURL, c.TokenURL = cmp.Or(c.MetadataURL, defaultMetadataURL), cmp.Or(c.TokenURL, defaultTokenURL)
	check.URL("MetadataURL", c.MetadataURL)
	check.URL("TokenURL", c.TokenURL)
	bounds.AtLeast(&check.Check, "Timeout", &c.Timeout, platform.DefaultTimeout, 1)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	c.Issuer, c.Scope = cmp.Or(c.Issuer, defaultIssuer), cmp.Or(c.Scope, defaultScope)
	a.config, a.now, a.client = c, c.Clock.Now, platform.Client(c.Timeout)
	a.door = platform.NewDoor(platform.DoorConfig{})
	a.verify = newVerifier(c, a.client, a.now)
	a.tokens = newTokens(c, a.client, a.now)
	// Only channels of teams have threads; elsewhere, the thread of an origin is ignored.
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: text.Markdown, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true,
	}, a.client)
	return a, nil
}

// allowed returns the service URL of an activity if it is of a configured service.
func (a *Adapter) allowed(service string) (*url.URL, bool) {
	u, err := url.Parse(service)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawPath != "" || u.Opaque != "" {
		return nil, false
	}
	dots := slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." })
	return u, !dots && slices.ContainsFunc(a.services, func(s *url.URL) bool {
		return u.Scheme == s.Scheme && strings.EqualFold(u.Host, s.Host)
	})
}
