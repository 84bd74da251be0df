package gatehttp

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run.
var ErrConfig = errors.New("gatehttp: invalid configuration")

// Config configures NewIndex and New. Fields that are zero have their defaults. NewIndex uses GateLimit, RowMemory, Clock and Logger. New
// uses the others, and has the Clock and the Logger of its index by default.
type Config struct {
	// Door is the configuration of the door. To read gates needs the right auth.Read, a decision auth.Answer, and everything about
	// grants auth.Control. A gate of a session that the caller may not use is answered as one that does not exist.
	auth.Door
	// GateLimit is how many gates and sessions an Index has (default 200,000, at least 1). Each takes some hundred bytes. Over the
	// limit, the gates that have ended are forgotten first, oldest first: requests for them get 404. If there are more open gates, the
	// Index logs an error and leaves new ones out: requests for gates that it does not have get 503 then.
	GateLimit int
	// RowMemory is how many bytes of rows an Index keeps in memory (default 64 MiB, at least 1). It reads others from the brokers when
	// they are needed.
	RowMemory int
	// DecisionWait is how long a decision waits for the outcome, unless the request says otherwise (default 5 s, at most 55 s;
	// negative: not at all). After it, the decision is answered with 202.
	DecisionWait time.Duration
}

// maxWait is the longest wait of a request for an outcome.
const maxWait = 55 * time.Second

func (c *Config) complete(check *bounds.Check) {
	entrance.Complete(check, &c.Door)
	bounds.AtLeast(check, "GateLimit", &c.GateLimit, 200_000, 1)
	bounds.AtLeast(check, "RowMemory", &c.RowMemory, 64<<20, 1)
	bounds.OrNone(&c.DecisionWait, 5*time.Second)
	bounds.Between(check, "DecisionWait", &c.DecisionWait, 0, -1, maxWait)
}
