package webchat

import (
	"errors"
	"path"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// Channel is the type of this channel: the Channel of origins.
const Channel = "webchat"

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("webchat: bad configuration")

// Config is the configuration of a Server. Zero limits mean the defaults.
type Config struct {
	// Account is the name of the account: the Account of origins. It is required.
	Account string
	// Authenticate identifies callers. It is required: without a user there is no one to answer.
	Authenticate auth.Authenticate
	// Origins are those of the pages from which browsers may connect, in addition to the server's own host: patterns of
	// path.Match for host or scheme://host (default none).
	Origins []string
	// Connections and PerCaller limit open connections, in all (default 1000) and of a caller (default 10).
	Connections, PerCaller int
	// PerMinute limits the messages and decisions of a connection (default 30, all of which may come at once). A connection
	// with ten times as many frames of any kind is closed.
	PerMinute int
	// Idle is how long a client may send nothing (default 5 min). It is disconnected after at most twice that time.
	Idle time.Duration
	// QueueFrames and QueueBytes limit what waits for a client that reads slowly (default 64 and 1 MiB). WriteTimeout is how long
	// writing a frame may take (default 10 s).
	QueueFrames, QueueBytes int
	WriteTimeout            time.Duration
	// ReceiveTimeout is how long the Receiver may take (default 30 s). Then the client is told to send the message again.
	ReceiveTimeout time.Duration
	// Audit receives events about refused connections (default: Logger).
	Audit auth.AuditSink
	// Clock is for Idle, PerMinute and the end of credentials (default: the system's).
	Clock processors.Clock
	// Logger logs errors, without texts (default: none).
	Logger *zap.Logger
}

// maxMessage is the largest frame of a client in bytes, and maxText the longest text of a frame to a client.
const (
	maxMessage = 64 << 10
	maxText    = 32 << 10
)

func (c *Config) complete(check *bounds.Check) {
	if c.Account == "" {
		check.Wrong("Account", "is empty")
	}
	if c.Authenticate == nil {
		check.Wrong("Authenticate", "is nil")
	}
	for _, p := range c.Origins {
		if _, err := path.Match(p, ""); err != nil || p == "" || p == entrance.AnyOrigin {
			check.Wrong("Origins", "has %q, want a pattern for the hosts of a site", p)
		}
	}
	bounds.AtLeast(check, "Connections", &c.Connections, 1000, 1)
	bounds.AtLeast(check, "PerCaller", &c.PerCaller, 10, 1)
	bounds.AtLeast(check, "PerMinute", &c.PerMinute, 30, 1)
	bounds.AtLeast(check, "QueueFrames", &c.QueueFrames, 64, 1)
	bounds.AtLeast(check, "QueueBytes", &c.QueueBytes, 1<<20, 1)
	bounds.AtLeast(check, "Idle", &c.Idle, 5*time.Minute, 1)
	bounds.AtLeast(check, "WriteTimeout", &c.WriteTimeout, 10*time.Second, 1)
	bounds.AtLeast(check, "ReceiveTimeout", &c.ReceiveTimeout, 30*time.Second, 1)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}

func (c *Config) entrance(check *bounds.Check) *entrance.Entrance {
	return entrance.New(check, entrance.Config{
		Door: auth.Door{
			Authenticate: c.Authenticate, Origins: c.Origins, Concurrency: c.Connections, Audit: c.Audit, Clock: c.Clock, Logger: c.Logger,
			Limits: auth.Limits{
				Caller:  auth.Share{Open: c.PerCaller, PerSecond: 10, Burst: 10 + 2*c.PerCaller},
				Session: auth.Share{Open: 1, PerSecond: 1, Burst: 1}, // no visit has a session
			},
		},
		Name: Channel, Agent: c.Account, Sockets: true,
	})
}
