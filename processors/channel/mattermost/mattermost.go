// Package mattermost is the adapter of Mattermost bots (https://developers.mattermost.com/api-documentation/).
//
// Messages arrive over the WebSocket API (Adapter.Run), which shows the bot every channel that it is a member of, or by outgoing
// webhooks (Adapter.Webhook), which Mattermost calls for public channels only and which do not say what thread a message is in.
// Answers are posts with a pending_post_id, by which Mattermost recognises a retry for a short time. A request for approval has
// buttons if Config.CallbackURL is set; Adapter.Actions is the handler behind them.
package mattermost

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

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

type base = platform.Base

// Adapter is a bot. It is safe for concurrent use. Call Close when it is no longer used.
type Adapter struct {
	base
	config Config
	api    string // the URL of the API, without a slash at its end
	client *http.Client
}

var errConfig = errors.New("mattermost: bad configuration")

// New returns the adapter of a bot. It makes no requests. The error names the invalid field and does not quote it.
func New(c Config) (*Adapter, error) {
	check := platform.NewCheck(c.Account, &c.Clock, &c.Logger)
	if c.Username == "" || strings.HasPrefix(c.Username, "@") {
		check.Wrong("Username", "is not the bot's name without @")
	}
	check.Secret("Token", c.Token)
	server := check.URL("BaseURL", c.BaseURL)
	if c.CallbackURL != "" {
		check.URL("CallbackURL", c.CallbackURL)
		if len(c.CallbackSecret) < minSecret {
			check.Wrong("CallbackSecret", "has less than %d bytes", minSecret)
		}
	}
	if err := check.Err(errConfig); err != nil {
		return nil, err
	}
	client := platform.Client(c.Timeout)
	return &Adapter{config: c, api: server + "/api/v4", client: client, base: platform.NewBase(Channel, adapter.Traits{
		Format: text.Markdown, Limit: text.Limit{Max: limit, Unit: text.Runes}, Threads: true, Buttons: c.CallbackURL != "",
	}, client)}, nil
}

var _ adapter.Adapter = (*Adapter)(nil)

// call makes a request and returns the answer. Its error is always an *adapter.Failure.
func (a *Adapter) call(ctx context.Context, method, path string, body any) (platform.Answer, error) {
	answer, err := platform.Do(ctx, a.client, method, a.api+path, a.config.Token, body)
	if err == nil {
		if f := a.failure(answer); f != nil {
			err = f
		}
	}
	return answer, err
}

// Check implements adapter.Checker.
func (a *Adapter) Check(ctx context.Context) error {
	_, err := a.me(ctx)
	return err
}
