package webhook

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
const Channel = "webhook"

// ErrConfig is wrapped by the errors of New. They do not quote secrets.
var ErrConfig = errors.New("webhook: bad configuration")

// Config describes an account.
type Config struct {
	// Account is the name of the account. Required.
	Account string
	// URL is where messages are sent: HTTPS, or HTTP on this host, and it may have a query. It is never taken from a message.
	// Required.
	URL string
	// Secrets verify requests to Handler: any one of them will do. Required. A secret is the Base64 of 24 to 64 bytes, with or
	// without the prefix "whsec_".
	Secrets []string
	// SendSecrets sign the requests to URL: each adds a signature, and the receiver needs to know one of them (default: Secrets).
	SendSecrets []string
	// Timeout is how long a request to URL may take (default 30 s).
	Timeout time.Duration
	// Format is the format of texts (default text.Markdown).
	Format text.Format
	// Limit is the longest text of one message (default 65535 bytes).
	Limit text.Limit
	// MaxBody is the largest body of a request to Handler in bytes (default 256 KiB).
	MaxBody int64
	// Clock is the clock of timestamps (default: the system clock).
	Clock processors.Clock
}

const (
	defaultLimit   = 65535
	defaultMaxBody = 256 << 10
)

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	config Config
	verify keys
	sign   keys
	client *http.Client
	door   *platform.Door
	now    func() time.Time
}

var _ adapter.Adapter = (*Adapter)(nil)

// New returns the adapter of an account. Call Close when it is no longer used. Its error wraps ErrConfig.
func New(c Config) (*Adapter, error) {
	var errs []error
	invalid := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrConfig, name, err))
		}
	}
	if strings.TrimSpace(c.Account) == "" || len(c.Account) > maxID {
		invalid("Account", errors.New("want 1 to 256 bytes"))
	}
	withoutQuery, _, _ := strings.Cut(c.URL, "?")
	_, err := platform.BaseURL(withoutQuery)
	invalid("URL", err)
	if _, err := http.NewRequest(http.MethodPost, c.URL, nil); err != nil || strings.Contains(c.URL, "#") {
		invalid("URL", errors.New("want a URL without a fragment"))
	}
	if len(c.SendSecrets) == 0 {
		c.SendSecrets = c.Secrets
	}
	verify, err := newKeys(c.Secrets)
	invalid("Secrets", err)
	sign, err := newKeys(c.SendSecrets)
	invalid("SendSecrets", err)
	if c.Timeout < 0 || c.MaxBody < 0 || c.Limit.Max < 0 {
		invalid("Timeout, MaxBody and Limit", errors.New("must not be negative"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.Format == "" {
		c.Format = text.Markdown
	}
	if c.Limit.Max == 0 {
		c.Limit = text.Limit{Max: defaultLimit, Unit: text.Bytes}
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	return &Adapter{
		config: c, verify: verify, sign: sign, client: platform.Client(c.Timeout),
		door: platform.NewDoor(platform.DoorConfig{Limit: c.MaxBody}), now: c.Clock.Now,
	}, nil
}

// Channel implements adapter.Adapter.
func (a *Adapter) Channel() string { return Channel }

// Traits implements adapter.Adapter. The receiver shows threads and buttons as it likes.
func (a *Adapter) Traits() adapter.Traits {
	return adapter.Traits{Format: a.config.Format, Limit: a.config.Limit, Threads: true, Buttons: true}
}

// Close closes idle connections.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }
