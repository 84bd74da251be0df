package webhook

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
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

type base = platform.Base

// Adapter sends to one account and receives from it. It is safe for concurrent use and starts no goroutine.
type Adapter struct {
	base
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
	check := platform.NewCheck(c.Account, &c.Clock, nil)
	if len(c.Account) > maxID {
		check.Wrong("Account", "has more than %d bytes", maxID)
	}
	withoutQuery, _, _ := strings.Cut(c.URL, "?")
	check.URL("URL", withoutQuery)
	if _, err := http.NewRequest(http.MethodPost, c.URL, nil); err != nil || strings.Contains(c.URL, "#") {
		check.Wrong("URL", "is not a URL without a fragment")
	}
	if len(c.SendSecrets) == 0 {
		c.SendSecrets = c.Secrets
	}
	a := &Adapter{verify: newKeys(check, "Secrets", c.Secrets), sign: newKeys(check, "SendSecrets", c.SendSecrets), now: c.Clock.Now}
	bounds.AtLeast(&check.Check, "Timeout", &c.Timeout, platform.DefaultTimeout, 1)
	bounds.AtLeast(&check.Check, "MaxBody", &c.MaxBody, 256<<10, 1)
	if c.Limit.Max == 0 {
		c.Limit.Unit = text.Bytes
	}
	bounds.AtLeast(&check.Check, "Limit", &c.Limit.Max, 65535, 1)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	a.config, a.client, a.door = c, platform.Client(c.Timeout), platform.NewDoor(platform.DoorConfig{Limit: c.MaxBody})
	// The receiver shows threads and buttons as it likes.
	a.base = platform.NewBase(Channel, adapter.Traits{
		Format: cmp.Or(c.Format, text.Markdown), Limit: c.Limit, Threads: true, Buttons: true,
	}, a.client)
	return a, nil
}
