// Package telegram is the adapter of Telegram bots (https://core.telegram.org/bots/api).
//
// Messages and pressed buttons arrive by a webhook (Adapter.Handler) or by long polling (Adapter.Run), which needs no public
// URL; Telegram allows only one of the two at a time. Answers are sent with sendMessage. Telegram has no idempotency key: if a
// connection is lost after Telegram accepted a message and before its response arrived, the retry sends the message twice.
//
// The adapter makes the few HTTP calls itself. The maintained client github.com/go-telegram/bot puts response bodies in its
// errors, acknowledges polled updates before they are handled, and rejects a whole update if one nested object has a type
// that it does not know. The bot's token is a part of every URL: no error or log entry contains a URL.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the type of the platform in origins and settings.
const Channel = "telegram"

const defaultBaseURL = "https://api.telegram.org"

// limit is the longest text of a message, in UTF-16 code units after its entities are parsed
// (https://core.telegram.org/bots/api#sendmessage). The tags of HTML are counted too, which is never too short.
const limit = 4096

// Config is the configuration of one bot.
type Config struct {
	// Account is the name of the bot in the settings of channels.
	Account string
	// Token is the bot's token from BotFather. Its part before the colon is the bot's user ID.
	Token string
	// Username is the bot's name, without "@". Mentions of it address the bot.
	Username string
	// Secret is the secret_token of setWebhook (https://core.telegram.org/bots/api#setwebhook): 16 to 256 letters, digits, "_"
	// and "-". It is required for Handler only.
	Secret string
	// BaseURL is the address of the Bot API (default https://api.telegram.org). It must have https, or be of this host.
	BaseURL string
	// Quote lets the first message of an answer in a group quote the message that it answers.
	Quote bool
	// Timeout is how long a request may take (default 30 s).
	Timeout time.Duration
	// Logger receives the reasons of lost connections and skipped updates, without their texts. Nil logs nothing.
	Logger *zap.Logger
	// Clock is the clock of waits (default the machine's).
	Clock processors.Clock
}

type base = platform.Base

// Adapter is a bot. It is safe for concurrent use. Call Close when it is no longer used.
type Adapter struct {
	base
	config Config
	user   int64  // of the bot
	method string // the URL of methods, which contains the token, with a slash at its end
	client *http.Client
	poll   *http.Client
}

var errConfig = errors.New("telegram: bad configuration")

// New returns the adapter of a bot. It makes no requests. The error names the invalid field and does not quote it.
func New(c Config) (*Adapter, error) {
	check := platform.NewCheck(c.Account, &c.Clock, &c.Logger)
	if c.Username == "" || strings.HasPrefix(c.Username, "@") {
		check.Wrong("Username", "is not the bot's name without @")
	}
	id, rest, _ := strings.Cut(c.Token, ":")
	user, err := strconv.ParseInt(id, 10, 64)
	if err != nil || user <= 0 || !word.MatchString(rest) {
		check.Wrong("Token", "is not of digits, a colon, and letters, digits, _ and -")
	}
	if c.Secret != "" && (!word.MatchString(c.Secret) || len(c.Secret) < 16 || len(c.Secret) > 256) {
		check.Wrong("Secret", "is not of 16 to 256 letters, digits, _ and -")
	}
	server := check.URL("BaseURL", cmp.Or(c.BaseURL, defaultBaseURL))
	if err := check.Err(errConfig); err != nil {
		return nil, err
	}
	a := &Adapter{
		config: c, user: user, method: server + "/bot" + c.Token + "/",
		client: platform.Client(c.Timeout), poll: platform.Client(pollTimeout + platform.DefaultTimeout),
	}
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: text.TelegramHTML, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true,
	}, a.client, a.poll)
	return a, nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

var _ adapter.Adapter = (*Adapter)(nil)

// answered tells Telegram that a pressed button was handled, which ends the progress bar on it
// (https://core.telegram.org/bots/api#answercallbackquery). A failure changes nothing.
func (a *Adapter) answered(ctx context.Context, query string) {
	if query == "" {
		return
	}
	_, err := a.call(ctx, a.client, "answerCallbackQuery", struct {
		ID string `json:"callback_query_id"`
	}{query})
	var f *adapter.Failure
	if errors.As(err, &f) {
		a.config.Logger.Info("telegram: pressed button was handled, but not acknowledged", zap.String("reason", f.Reason))
	}
}
