package tools

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of NewWorker and Run about an invalid configuration. They name the field.
var ErrConfig = errors.New("tools: invalid configuration")

// Limit bounds the calls that have the same key, see worker.Limit.
type Limit = worker.Limit[Call]

// Config configures NewWorker. Fields that are zero have their defaults.
type Config struct {
	// Config is that of the worker that reads the calls. Its Timeout, Limits, DeadLetter and Drop must be zero. What differs:
	//
	// Group is "{agent}-tool-execution" by default, the group of FlightDeck's workers. Workers of one group share the calls, so each
	// of them must have all tools. Workers with different tools need different groups and IgnoreUnknown.
	//
	// Concurrency is how many calls of each tool run at a time.
	//
	// Waiting is how many calls may wait for their tool or for another limit, in addition to those that run (default 1000). They are
	// held in memory. From a share group, a worker acquires calls that have to wait only while another of its tools can run a call,
	// or while the calls of one session occupy more than half of its slots; other workers get the rest. If this many calls wait for a
	// tool that hangs, the calls behind them wait until the waiting calls are answered at their deadlines.
	//
	// ReadAhead is that many calls more than can run, by default.
	//
	// Grace is how long tools may keep running after the worker stops. Then they are interrupted, and called again after the
	// redelivery.
	worker.Config
	// IgnoreUnknown ignores calls to tools that were not passed to NewWorker, so that other workers can answer them. By default they
	// are answered immediately with an error, reason unknown_tool.
	IgnoreUnknown bool
	// ToolConcurrency is how many calls of single tools run at a time (default: Concurrency), by the names of the tools.
	ToolConcurrency map[string]int
	// Timeout is how long after the timestamp of its record a call may run (at least 1 ms). By default, a call has the deadline of
	// its turn, which the turn sends in the header turntable.deadline, or 5 minutes without that header (a call of another pipeline).
	// If both are set, the earlier deadline applies. A call that exceeds its deadline, before or after its tool starts, is answered
	// with an error, reason timeout.
	Timeout time.Duration
	// Limits bound the calls of all tools by further keys, for example by tenant, or by the service that some tools use (default:
	// none). A call that waits delays no call with other keys, and sessions take turns. A call whose deadline passes while it waits is
	// answered with an error, reason timeout.
	Limits []Limit
	// TokenSecret and TokenTTL enable callback tokens (Call.Token; default: none). They are signed with the secret, which the
	// callback door must accept, and expire this long after the timestamp of the call's record. The secret must have at least
	// token.MinSecret (32) bytes; TokenTTL must be at least a second. FlightDeck's dispatcher uses 24 hours.
	TokenSecret string
	TokenTTL    time.Duration
	// RememberFor, RememberCount and RememberBytes limit the age, number and total bytes of the results that are kept in memory and
	// published again when their call is repeated (default 24 hours, 10,000 and 64 MiB). The oldest are evicted first; one larger than
	// RememberBytes is not kept. For a repeat whose record is no longer kept, the tool is called again.
	RememberFor   time.Duration
	RememberCount int
	RememberBytes int64
}

// rules are a complete Config.
type rules struct {
	responder.Settings
	ofTool      map[string]int // concurrency of single tools
	limits      []Limit
	tokens      tokens
	leaveOthers bool
}

func (c Config) rules(catalog topics.Catalog) rules {
	r := rules{
		ofTool: c.ToolConcurrency, limits: c.Limits, tokens: tokens{c.TokenSecret, c.TokenTTL}, leaveOthers: c.IgnoreUnknown,
		Settings: responder.NewSettings(c.Config, c.Timeout,
			responder.Bounds{Age: c.RememberFor, Count: c.RememberCount, Bytes: c.RememberBytes}, responder.Defaults{
				Invalid: ErrConfig, Group: catalog.ToolGroup(), Archive: catalog.Archive(), Concurrency: 16, Timeout: 5 * time.Minute,
			}),
	}
	if r.Waiting == 0 {
		r.Waiting = 1000
	}
	for name, calls := range c.ToolConcurrency {
		if calls < 1 {
			r.Wrong("ToolConcurrency", "of %q is %d, want at least 1", name, calls)
		}
	}
	responder.CheckLimits(&r.Settings, r.limits)
	if c.TokenSecret != "" || c.TokenTTL != 0 {
		if v, err := token.NewVerifier(c.TokenSecret); err != nil || !v.Configured() {
			r.Wrong("TokenSecret", "must have at least %d bytes", token.MinSecret)
		}
		if c.TokenTTL < time.Second {
			r.Wrong("TokenTTL", "is %v, want at least 1s", c.TokenTTL)
		}
	}
	return r
}
