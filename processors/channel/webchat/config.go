package webchat

import (
	"errors"
	"fmt"
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

func (c *Config) check() error {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Account == "" {
		invalid("Account is empty")
	}
	if c.Authenticate == nil {
		invalid("Authenticate is nil")
	}
	for _, p := range c.Origins {
		if _, err := path.Match(p, ""); err != nil || p == "" || p == "*" {
			invalid("Origins: %q is not a pattern for the hosts of a site", p)
		}
	}
	for _, limit := range []struct {
		name  string
		value *int
		or    int
	}{
		{"Connections", &c.Connections, 1000},
		{"PerCaller", &c.PerCaller, 10},
		{"PerMinute", &c.PerMinute, 30},
		{"QueueFrames", &c.QueueFrames, 64},
		{"QueueBytes", &c.QueueBytes, 1 << 20},
	} {
		if *limit.value < 0 {
			invalid("%s is %d, want at least 1", limit.name, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.or
		}
	}
	for _, limit := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"Idle", &c.Idle, 5 * time.Minute},
		{"WriteTimeout", &c.WriteTimeout, 10 * time.Second},
		{"ReceiveTimeout", &c.ReceiveTimeout, 30 * time.Second},
	} {
		if *limit.value < 0 {
			invalid("%s is %s, want a duration above zero", limit.name, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.or
		}
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return errors.Join(errs...)
}

func (c *Config) entrance() (*entrance.Entrance, error) {
	var check bounds.Check
	e := entrance.New(&check, entrance.Config{
		Door: auth.Door{
			Authenticate: c.Authenticate, Origins: c.Origins, Concurrency: c.Connections, Audit: c.Audit, Clock: c.Clock, Logger: c.Logger,
			Limits: auth.Limits{
				Caller:  auth.Share{Open: c.PerCaller, PerSecond: 10, Burst: 10 + 2*c.PerCaller},
				Session: auth.Share{Open: 1, PerSecond: 1, Burst: 1}, // no visit has a session
			},
		},
		Name: Channel, Agent: c.Account, Sockets: true,
	})
	return e, check.Err(ErrConfig)
}
