// Package mattermost is the adapter of Mattermost bots (https://developers.mattermost.com/api-documentation/).
//
// Messages arrive over the WebSocket API (Adapter.Run), which shows the bot every channel that it is a member of, or by outgoing
// webhooks (Adapter.Webhook), which Mattermost calls for public channels only and which do not say what thread a message is in.
// Answers are posts with a pending_post_id, by which Mattermost recognises a retry for a short time. A request for approval has
// buttons if Config.CallbackURL is set; Adapter.Actions is the handler behind them.
package mattermost

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the type of the platform in origins and settings.
const Channel = "mattermost"

const (
	// limit is the longest message of a post, in characters
	// (https://docs.mattermost.com/administration-guide/configure/environment-configuration-settings.html).
	limit = 16383
	// minSecret is the shortest secret, in bytes.
	minSecret = 16
)

// Config is the configuration of one bot.
type Config struct {
	// Account is the name of the bot in the settings of channels.
	Account string
	// BaseURL is the address of the server, without /api. It must have https, or be of this host.
	BaseURL string
	// Token is the bot's access token, and Username its name without "@".
	Token, Username string
	// WebhookToken is the token of the outgoing webhook. It is required for Webhook only.
	WebhookToken string
	// CallbackURL is the address at which Mattermost reaches Actions; buttons are shown only if it is set. CallbackSecret, of at
	// least 16 bytes, signs the buttons. Mattermost calls private addresses only if its setting
	// AllowedUntrustedInternalConnections has them.
	CallbackURL, CallbackSecret string
	// Timeout is how long a request may take (default 30 s).
	Timeout time.Duration
	// Logger receives the reasons of lost connections and skipped events, without their texts. Nil logs nothing.
	Logger *zap.Logger
	// Clock is the clock of waits (default the machine's).
	Clock processors.Clock
}

// Adapter is a bot. It is safe for concurrent use. Call Close when it is no longer used.
type Adapter struct {
	config Config
	api    string // the URL of the API, without a slash at its end
	client *http.Client
}

// New returns the adapter of a bot. It makes no requests. The error names the invalid field and does not quote it.
func New(c Config) (*Adapter, error) {
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	var errs []error
	if c.Account == "" {
		errs = append(errs, errors.New("field Account is empty"))
	}
	if c.Username == "" || strings.HasPrefix(c.Username, "@") {
		errs = append(errs, errors.New("field Username: want the bot's name without @"))
	}
	if !platform.HeaderValue(c.Token) {
		errs = append(errs, errors.New("field Token: want printable ASCII characters"))
	}
	base, err := platform.BaseURL(c.BaseURL)
	if err != nil {
		errs = append(errs, fmt.Errorf("field BaseURL: %w", err))
	}
	if c.CallbackURL != "" {
		if _, err := platform.BaseURL(c.CallbackURL); err != nil {
			errs = append(errs, fmt.Errorf("field CallbackURL: %w", err))
		}
		if len(c.CallbackSecret) < minSecret {
			errs = append(errs, fmt.Errorf("field CallbackSecret: want at least %d bytes", minSecret))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("mattermost: %w", errors.Join(errs...))
	}
	return &Adapter{config: c, api: base + "/api/v4", client: platform.Client(c.Timeout)}, nil
}

// Channel implements adapter.Adapter.
func (a *Adapter) Channel() string { return Channel }

// Traits implements adapter.Adapter.
func (a *Adapter) Traits() adapter.Traits {
	return adapter.Traits{
		Format: text.Markdown, Limit: text.Limit{Max: limit, Unit: text.Runes}, Threads: true, Buttons: a.config.CallbackURL != "",
	}
}

// Close closes idle connections.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }

var _ adapter.Adapter = (*Adapter)(nil)
