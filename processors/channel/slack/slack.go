// Package slack is the adapter for Slack: its Events API and interactivity (https://docs.slack.dev/apis/events-api,
// https://docs.slack.dev/interactivity/handling-user-interaction) for messages and pressed buttons, and chat.postMessage
// (https://docs.slack.dev/reference/methods/chat.postMessage) for answers.
//
// The app needs the scope chat:write, the events app_mention, message.im and, for rooms in which the agent reads everything,
// message.channels, message.groups and message.mpim. Both request URLs of the app may be the same: that of Handler.
package slack

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the Channel of the adapter's origins.
const Channel = "slack"

const defaultURL = "https://slack.com/api"

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
	// URL is the base URL of the Web API (default https://slack.com/api): HTTPS, or HTTP on this host.
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

type base = platform.Base

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	base
	config Config
	client *http.Client
	door   *platform.Door
	passed *lru.Cache[passed, struct{}]
	now    func() time.Time
}

var _ adapter.Adapter = (*Adapter)(nil)

// New returns the adapter of an account. Call Close when it is no longer used. Its error wraps ErrConfig.
func New(c Config) (*Adapter, error) {
	check := platform.NewCheck(c.Account, &c.Clock, nil)
	check.Secret("Token", c.Token)
	if len(c.SigningSecrets) == 0 || len(c.SigningSecrets) > 8 {
		check.Wrong("SigningSecrets", "are %d, want 1 to 8", len(c.SigningSecrets))
	}
	if slices.ContainsFunc(c.SigningSecrets, func(s string) bool { return len(s) < 16 }) {
		check.Wrong("SigningSecrets", "have one that is shorter than 16 characters")
	}
	c.URL = check.URL("URL", cmp.Or(c.URL, defaultURL))
	bounds.AtLeast(&check.Check, "Timeout", &c.Timeout, platform.DefaultTimeout, 1)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	a := &Adapter{
		config: c, client: platform.Client(c.Timeout), now: c.Clock.Now,
		door: platform.NewDoor(platform.DoorConfig{Media: []string{mediaJSON, mediaForm}}),
	}
	a.passed, _ = lru.New[passed, struct{}](maxPassed) // fails for a size below 1
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: text.SlackMrkdwn, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true,
	}, a.client)
	return a, nil
}
