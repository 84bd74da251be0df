// Package slack is the adapter for Slack: its Events API and interactivity (https://docs.slack.dev/apis/events-api,
// https://docs.slack.dev/interactivity/handling-user-interaction) for messages and pressed buttons, and chat.postMessage
// (https://docs.slack.dev/reference/methods/chat.postMessage) for answers.
//
// The app needs the scope chat:write, the events app_mention, message.im and, for rooms in which the agent reads everything,
// message.channels, message.groups and message.mpim. Both request URLs of the app may be the same: that of Handler.
package slack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the Channel of the adapter's origins.
const Channel = "slack"

// DefaultURL is the base URL of Slack's Web API.
const DefaultURL = "https://slack.com/api"

// ErrConfig is wrapped by the errors of New. They do not quote secrets.
var ErrConfig = errors.New("slack: bad configuration")

// Config describes an account: an app that is installed in a workspace.
type Config struct {
	// Account is the name of the account. Required.
	Account string
	// Token is the bot token, which begins with "xoxb-". Required.
	Token string
	// SigningSecrets verify requests to Handler: any one of them will do, so that the secret can be replaced. Required.
	SigningSecrets []string
	// AppID and TeamID are the IDs of the app and of its workspace. Events of others are dropped if they are set. Set TeamID for an
	// app that is installed in several workspaces: each has a token of its own.
	AppID, TeamID string
	// BotUser is the user ID of the app's bot (default: the one that the event names).
	BotUser string
	// URL is the base URL of the Web API (default DefaultURL): HTTPS, or HTTP on this host.
	URL string
	// Timeout is how long a request to Slack may take (default 30 s).
	Timeout time.Duration
	// Clock is the clock of timestamps (default: the system clock).
	Clock processors.Clock
}

// limit is the longest text of a section block in characters, https://docs.slack.dev/reference/block-kit/blocks/section-block. It
// is below the 4000 characters that Slack recommends for the text of a message, so one limit is right for both. Slack does not
// say what a character is: UTF-16 units are never fewer than any other choice.
const limit = 3000

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	config Config
	client *http.Client
	door   *platform.Door
	passed *passed
	now    func() time.Time
}

var _ adapter.Adapter = (*Adapter)(nil)

// New returns the adapter of an account. Call Close when it is no longer used. Its error wraps ErrConfig.
func New(c Config) (*Adapter, error) {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if strings.TrimSpace(c.Account) == "" {
		invalid("no Account")
	}
	if c.Token == "" || strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		invalid("Token: want a bot token")
	}
	if len(c.SigningSecrets) == 0 || len(c.SigningSecrets) > 8 {
		invalid("SigningSecrets: want 1 to 8")
	}
	for _, s := range c.SigningSecrets {
		if len(s) < 16 {
			invalid("SigningSecrets: one is shorter than 16 characters")
		}
	}
	if c.URL == "" {
		c.URL = DefaultURL
	}
	base, err := platform.BaseURL(c.URL)
	if err != nil {
		invalid("URL: %w", err)
	}
	if c.Timeout < 0 {
		invalid("Timeout must not be negative")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	c.URL = base
	return &Adapter{
		config: c, client: platform.Client(c.Timeout), passed: newPassed(), now: c.Clock.Now,
		door: platform.NewDoor(platform.DoorConfig{Media: []string{mediaJSON, mediaForm}}),
	}, nil
}

// Channel implements adapter.Adapter.
func (a *Adapter) Channel() string { return Channel }

// Traits implements adapter.Adapter.
func (a *Adapter) Traits() adapter.Traits {
	return adapter.Traits{
		Format: text.SlackMrkdwn, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true,
	}
}

// Close closes idle connections.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }
