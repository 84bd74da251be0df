// Package discord is the adapter of Discord bots (https://discord.com/developers/docs).
//
// Messages arrive over the gateway (Adapter.Run). Pressed buttons arrive at the interactions endpoint (Adapter.Handler) if the
// application has one, and over the gateway otherwise. Answers are sent by the REST API with a nonce that Discord enforces, so a
// retry within a few minutes sends nothing twice. They mention nobody, whatever the model writes.
//
// Signatures are verified with github.com/bwmarrin/discordgo, which also has the endpoints and the components of messages. Its client
// and its gateway are not used: the waits of the client for rate limits cannot be cancelled, and it hides statuses; the gateway confirms
// events before they are handled, reads messages of any length and cannot be stopped while it connects. The gateway of this package confirms an event after the receiver took it:
// after a lost connection, a resumed session replays the events from there.
package discord

import (
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Channel is the type of the platform in origins and settings.
const Channel = "discord"

// The addresses of Discord.
const (
	defaultBaseURL    = "https://discord.com"
	defaultGatewayURL = "wss://gateway.discord.gg"
)

const (
	// limit is the longest content of a message (https://discord.com/developers/docs/resources/message#create-message).
	limit = 2000
	// places is how many channels are remembered to be threads or not.
	places = 10_000
)

// Config is the configuration of one bot.
type Config struct {
	// Account is the name of the bot in the settings of channels.
	Account string
	// Token is the bot's token, without "Bot " before it.
	Token string
	// PublicKey is the application's public key in hexadecimal. It is required for Handler only.
	PublicKey string
	// BaseURL is the address of the REST API without /api (default https://discord.com), and GatewayURL that of the gateway
	// (default wss://gateway.discord.gg). They must have https and wss, or be of this host.
	BaseURL, GatewayURL string
	// Timeout is how long a request may take (default 30 s).
	Timeout time.Duration
	// Logger receives the reasons of lost connections and skipped events, without their texts. Nil logs nothing.
	Logger *zap.Logger
	// Clock is the clock of waits and signatures (default the machine's).
	Clock processors.Clock
}

type base = platform.Base

// Adapter is a bot. It is safe for concurrent use. Call Close when it is no longer used.
type Adapter struct {
	base
	config  Config
	key     ed25519.PublicKey
	gateway *url.URL
	client  *http.Client
	places  *lru.Cache[string, place]

	mu     sync.Mutex
	paused time.Time // until which the account sends nothing, because of a global rate limit
}

var errConfig = errors.New("discord: bad configuration")

// New returns the adapter of a bot. It makes no requests. The error names the invalid field and does not quote it.
func New(c Config) (*Adapter, error) {
	check := platform.NewCheck(c.Account, &c.Clock, &c.Logger)
	check.Secret("Token", c.Token)
	key, err := hex.DecodeString(c.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize && len(key) != 0 {
		check.Wrong("PublicKey", "is not of 64 hexadecimal digits")
	}
	c.BaseURL = check.URL("BaseURL", cmp.Or(c.BaseURL, defaultBaseURL))
	c.GatewayURL = cmp.Or(c.GatewayURL, defaultGatewayURL)
	a := &Adapter{key: key, gateway: check.Socket("GatewayURL", strings.TrimRight(c.GatewayURL, "/"))}
	if err := check.Err(errConfig); err != nil {
		return nil, err
	}
	a.config, a.client = c, platform.Client(c.Timeout)
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: text.DiscordMarkdown, Limit: text.Limit{Max: limit, Unit: text.UTF16}, Threads: true, Buttons: true,
	}, a.client)
	a.places, _ = lru.New[string, place](places) // fails for a size below 1
	return a, nil
}

var _ adapter.Adapter = (*Adapter)(nil)
