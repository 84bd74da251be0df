package platform

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// Base has the methods of an adapter that differ only in what they return. An adapter embeds it.
type Base struct {
	channel string
	traits  adapter.Traits
	clients []*http.Client
}

// NewBase returns the methods of an adapter, whose Close closes the idle connections of clients.
func NewBase(channel string, traits adapter.Traits, clients ...*http.Client) Base {
	return Base{channel, traits, clients}
}

// Channel implements adapter.Adapter.
func (b *Base) Channel() string { return b.channel }

// Traits implements adapter.Adapter.
func (b *Base) Traits() adapter.Traits { return b.traits }

// Close closes idle connections.
func (b *Base) Close() {
	for _, c := range b.clients {
		c.CloseIdleConnections()
	}
}

// Check checks the configuration of an adapter. Its errors name the field and do not quote it.
type Check struct{ bounds.Check }

// NewCheck checks the name of an account, and completes the clock and the logger of its configuration. Entries of the logger have
// the name. A nil log is none.
func NewCheck(account string, c *processors.Clock, log **zap.Logger) *Check {
	check := &Check{}
	if strings.TrimSpace(account) == "" {
		check.Wrong("Account", "is empty")
	}
	if *c == nil {
		*c = clock.System()
	}
	if log != nil {
		if *log == nil {
			*log = zap.NewNop()
		}
		*log = (*log).With(zap.String("account", account))
	}
	return check
}

// Secret checks a secret that is sent in a header.
func (c *Check) Secret(field, secret string) {
	if !HeaderValue(secret) {
		c.Wrong(field, "is empty or has other than printable ASCII characters")
	}
}

// URL returns a URL that BaseURL has checked.
func (c *Check) URL(field, text string) string {
	base, err := BaseURL(text)
	if err != nil {
		c.Wrong(field, "is unusable: %w", err)
	}
	return base
}

// Socket returns a URL that SocketURL has checked.
func (c *Check) Socket(field, text string) *url.URL {
	u, err := SocketURL(text)
	if err != nil {
		c.Wrong(field, "is unusable: %w", err)
	}
	return u
}
