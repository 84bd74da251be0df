// Package matrix is the adapter of Matrix (https://spec.matrix.org/latest/), for a bot with an account or an application service.
//
// Messages arrive by long polling of /sync (Adapter.Run) or as transactions of the homeserver to an application service
// (Adapter.Handler). Answers are sent with a transaction ID for every chunk, by which the homeserver recognises retries, and mention
// nobody. The bot does not join rooms by itself and does not read encrypted messages. Matrix has no buttons.
package matrix

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the type of the platform in origins and settings.
const Channel = "matrix"

const (
	// limit is the longest body of a message, in characters. An event has at most 65536 bytes, of JSON and with what servers add
	// (https://spec.matrix.org/latest/client-server-api/#size-limits).
	limit = 4096
	// rooms is how many rooms are remembered to be direct or not.
	rooms = 10_000
	// maxSync is the largest response to a sync or list of members, in bytes.
	maxSync = 32 << 20
	// minSecret is the shortest token of a homeserver, in bytes.
	minSecret = 16
)

// Config is the configuration of one bot.
type Config struct {
	// Account is the name of the bot in the settings of channels.
	Account string
	// BaseURL is the address of the homeserver's client API. It must have https, or be of this host.
	BaseURL string
	// AccessToken is the bot's access token, or the as_token of an application service.
	AccessToken string
	// UserID is the bot's full ID, such as @bot:example.org. Its own messages are dropped.
	UserID string
	// DisplayName is the name under which the bot is mentioned in texts. It may be empty.
	DisplayName string
	// HomeserverToken is the hs_token of the application service, of at least 16 bytes. It is required for Handler only.
	HomeserverToken string
	// Since keeps the position of Run between runs of the program (default NewMemory: Run starts at the present).
	Since Since
	// Timeout is how long a request may take (default 30 s).
	Timeout time.Duration
	// Logger receives the reasons of failures and skipped events, without their texts. Nil logs nothing.
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
	poll   *http.Client // for long and large responses
	direct *lru.Cache[string, membership]
}

var errConfig = errors.New("matrix: bad configuration")

// New returns the adapter of a bot. It makes no requests. The error names the invalid field and does not quote it.
func New(c Config) (*Adapter, error) {
	check := platform.NewCheck(c.Account, &c.Clock, &c.Logger)
	if c.Since == nil {
		c.Since = NewMemory()
	}
	if !strings.HasPrefix(c.UserID, "@") || !strings.Contains(c.UserID, ":") {
		check.Wrong("UserID", "is not of the form @name:server")
	}
	check.Secret("AccessToken", c.AccessToken)
	if c.HomeserverToken != "" && (len(c.HomeserverToken) < minSecret || !platform.HeaderValue(c.HomeserverToken)) {
		check.Wrong("HomeserverToken", "is not of at least %d printable ASCII characters", minSecret)
	}
	server := check.URL("BaseURL", c.BaseURL)
	if err := check.Err(errConfig); err != nil {
		return nil, err
	}
	a := &Adapter{
		config: c, api: server + "/_matrix/client/v3", client: platform.Client(c.Timeout),
		poll: platform.ClientUpTo(pollTimeout+platform.DefaultTimeout, maxSync),
	}
	a.direct, _ = lru.New[string, membership](rooms) // fails for a size below 1
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: text.Markdown, Limit: text.Limit{Max: limit, Unit: text.Runes}, Threads: true,
	}, a.client, a.poll)
	return a, nil
}

var _ adapter.Adapter = (*Adapter)(nil)

// call makes a request and returns the answer. Its error is always an *adapter.Failure.
func (a *Adapter) call(ctx context.Context, client *http.Client, method, path string, body any) (platform.Answer, error) {
	answer, err := platform.Do(ctx, client, method, a.api+path, a.config.AccessToken, body)
	if err == nil {
		if f := a.failure(answer); f != nil {
			err = f
		}
	}
	return answer, err
}

// Check implements adapter.Checker with https://spec.matrix.org/latest/client-server-api/#get_matrixclientv3accountwhoami.
func (a *Adapter) Check(ctx context.Context) error {
	_, err := a.call(ctx, a.client, http.MethodGet, "/account/whoami", nil)
	return err
}
