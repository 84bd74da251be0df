package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/turn"
)

var (
	// ErrConfig is wrapped by the errors of New and Console.Run.
	ErrConfig   = errors.New("console: invalid configuration")
	errNotReady = errors.New("console: the tables are not read yet, or cannot be read now")
)

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Door is the configuration of the door. The right auth.Read shows the sessions that the caller may use, auth.Answer decides their
	// gates, and auth.Control cancels, purges and requeues. What concerns all sessions is for callers that may use every session.
	//
	// Without Authenticate the console only shows, unless Open is set: then everyone who reaches it may do everything. Browsers are
	// asked for a name and a password: the password is passed to Authenticate as a bearer token, so that API keys and tokens work.
	// Serve it with TLS then.
	auth.Door
	// Root is the URL path at which the console is served, for example "/ops/console" (default "/console").
	Root string
	// Processors are the groups that run in this process, for their health (default none).
	Processors map[goka.Group]*processors.Processor
	// Topology is what processors.Describe says of the groups, to be shown (default none).
	Topology processors.Topology
	// Budgets are those of turn.Config, to be shown beside what was spent (default none).
	Budgets turn.Budgets
	// Crews is the door of crews, a crewhttp.Handler with its usual Prefix (default none). The console asks it with the credential of its
	// own caller: give both the same Authenticate.
	Crews http.Handler
	// Mask changes a text of people or tools before it is shown, for example to hide card numbers (default: texts are shown as they
	// are). It is called for each request of such a text, from several goroutines.
	Mask func(Payload) string
	// SessionLimit is how many stored sessions the index has (default 2,000,000, at least 1), each about 200 bytes. Over the limit, the
	// idle sessions that changed the longest time ago are not listed.
	SessionLimit int
	// ItemLimit is how many open gates, how many deliveries, how many dead letters and how many users and tenants the index has, each
	// (default 100,000, at least 1). An item takes about 400 bytes. The console says when it leaves some out.
	ItemLimit int
	// SpanLimit is how many steps, calls, gates and deliveries of recent turns the index has for the time axis (default 200,000, at
	// least 1), each about 250 bytes. Over the limit, those of the session that changed the longest time ago are dropped.
	SpanLimit int
}

// Payload is a text that someone has asked to see.
type Payload struct {
	// Kind is conversation, arguments, message, options, answer, delivery or letter.
	Kind string
	// Session is the session's ID, or the key of a dead letter.
	Session string
	// Text is what would be shown.
	Text string
}

func (c *Config) complete() error {
	var check bounds.Check
	entrance.Complete(&check, &c.Door)
	if c.Root == "" {
		c.Root = "/console"
	}
	c.Root = strings.TrimSuffix(c.Root, "/")
	if c.Root != "" && !strings.HasPrefix(c.Root, "/") {
		check.Wrong("Root", "is %q, want a path that begins with /", c.Root)
	}
	if c.Mask == nil {
		c.Mask = func(p Payload) string { return p.Text }
	}
	bounds.AtLeast(&check, "SessionLimit", &c.SessionLimit, 2_000_000, 1)
	bounds.AtLeast(&check, "ItemLimit", &c.ItemLimit, 100_000, 1)
	bounds.AtLeast(&check, "SpanLimit", &c.SpanLimit, 200_000, 1)
	return check.Err(ErrConfig)
}
