package delegation

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of Graph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("delegation: invalid configuration")

// Config configures Graph. Fields that are zero have their defaults.
type Config struct {
	// Agents are the agents that the agent may delegate tasks to, and those that may delegate to it. Each of them needs a Graph of its
	// own, in this process or another. The agent itself may be among them. Their topics must exist (topics.WithChannels): at a record
	// for one that does not, the partition of the session waits and is tried again, and Health names the topic. If it is never
	// created, the processor stops after its last restart (processors.WithRestartLimit).
	Agents []string
	// Peers lets the agent delegate tasks to peers, whose IDs begin with "peer:". It needs the group of package peer for the same
	// agent, and its topics (topics.WithPeers).
	Peers bool
	// Deadline is how long a delegation may take (default 10 minutes, at least 1 ms). The member timeout_seconds of a call can shorten
	// it. The task is then cancelled, and the delegation ends as timed_out.
	Deadline time.Duration
	// OpenLimit is how many delegations of a session may be open (default 500, at least 1). Further calls fail with too_many_open.
	OpenLimit int
	// DepthLimit is how many delegations may lead to a task (default 5, at least 1): a task that was delegated may delegate, and so may
	// the turn that announces a result. Deeper calls fail with too_deep.
	DepthLimit int
	// Prompts returns the prompt of a conversation: that of the account in the settings in force (default: none). The turn that
	// announces a result gets it, followed by the callback prompt. The function is called in the goroutines of partitions when a
	// result is announced, so it must be fast and must not block. With Sessions it is also called with the zero Origin.
	Prompts func(topics.Origin) string
	// Sessions announces results also in sessions whose messages have no origin, such as those of /invoke: the announcement is a
	// message of the session, and its turn is a turn of the session as any other. A WebSocket shows it, the next request of the session
	// has it in its history unless its turn ends in an error, and no request waits for it. The result can be read in every case. While
	// the turn runs, a turn.Config.Policy that rejects messages answers other requests of the session with the code busy. Default: such
	// results can only be read. The sessions of tasks, which another agent or a peer has given, are left out: what they say after the
	// output of the task reaches no one.
	//
	// Sessions requires turn.Config.Channels. Without it, DepthLimit still counts the calls of announcements of package turn, but the
	// model gets no callback prompt, and a turn of another implementation could delegate in its announcements indefinitely.
	Sessions bool
	// CallbackPrompt is the section of the system prompt of a turn that announces a result (default: the constant CallbackPrompt; at
	// most 8 KiB).
	CallbackPrompt string
	// CallbackWait is how long the next result waits until the one before it was announced (default 15 minutes, at least 1 ms). A turn
	// always has an output, so the wait passes only if the agent's turn does not run.
	CallbackWait time.Duration
	// RememberFor is for how long delegations that have ended are known (default 24 hours, at least 1 ms): their IDs are not used
	// again, and a call of agent_cancel is told how they ended.
	RememberFor time.Duration
	// RecordLimit is the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must not exceed the
	// producer's max.request.size and the topics' max.message.bytes. Longer results are cut.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes (default: RecordLimit less 64 KiB; at least 64 KiB, at most RecordLimit). Calls
	// fail with no_room when the row is full.
	RowLimit int
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// Bounds that are not configured.
const (
	maxAnnounced = 32 << 10    // bytes of a result in a callback message
	minAnnounced = 1 << 10     // bytes of it that always fit into the row
	maxEnded     = 1000        // delegations that have ended
	maxAnswered  = 64          // outputs that were read before their messages
	earlyFor     = time.Hour   // how long these are kept, and the IDs of delegations of a purged session
	writeAgain   = time.Minute // until a reply that did not come back is written again
	maxAhead     = time.Minute // how far the clock of a record's writer may be ahead
	maxPrompt    = 16 << 10    // bytes of the ephemeral prompt of a message
	minRecord    = envoption.MinRecordLimit
)

// complete gives fields that are zero their defaults. Its error is that of Graph.
func (c *Config) complete() error {
	var check bounds.Check
	for i, agent := range c.Agents {
		if slices.Contains(c.Agents[:i], agent) {
			check.Wrong("Agents", "has %q twice", agent)
		}
	}
	bounds.AtLeast(&check, "Deadline", &c.Deadline, 10*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "OpenLimit", &c.OpenLimit, 500, 1)
	bounds.AtLeast(&check, "DepthLimit", &c.DepthLimit, 5, 1)
	if c.Prompts == nil {
		c.Prompts = func(topics.Origin) string { return "" }
	}
	c.CallbackPrompt = cmp.Or(c.CallbackPrompt, CallbackPrompt)
	if len(c.CallbackPrompt) > maxPrompt/2 {
		check.Wrong("CallbackPrompt", "has %d bytes, want at most %d", len(c.CallbackPrompt), maxPrompt/2)
	}
	bounds.AtLeast(&check, "CallbackWait", &c.CallbackWait, 15*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord)
	bounds.Between(&check, "RowLimit", &c.RowLimit, c.RecordLimit-rowMargin, minRecord-rowMargin, c.RecordLimit)
	return check.Err(ErrConfig)
}
