package channel

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Option sets a rule of Graph, which checks the values and returns an error that names the first option that is out of range.
type Option func(*options)

type options struct {
	rules    Rules
	rowLimit int // 0: the record limit less rowMargin
	agents   []string
	prompts  func(topics.Origin) string
}

// WithAgents sets the agents that the agent may delegate tasks to, and those that may delegate to it. Each of them needs a Graph
// of its own, in this process or another. The agent itself may be among them. Their topics must exist (topics.WithChannels): at a
// record for one that does not, the partition of the session waits and is tried again, and Health names the topic. If it is never
// created, the processor stops after its last restart (processors.WithRestartLimit).
func WithAgents(agents ...string) Option {
	return func(o *options) { o.agents = agents }
}

// WithPeers lets the agent delegate tasks to peers, whose IDs begin with "peer:". It needs the group of package peer for the
// same agent, and its topics (topics.WithPeers).
func WithPeers() Option {
	return func(o *options) { o.rules.Peers = true }
}

// WithDeadline sets how long a delegation may take (default 10 minutes). The member timeout_seconds of a call can shorten it.
// The task is then cancelled, and the delegation ends as timed_out.
func WithDeadline(d time.Duration) Option {
	return func(o *options) { o.rules.Deadline = d }
}

// WithOpenLimit sets how many delegations of a session may be open (default 500). Further calls fail with too_many_open.
func WithOpenLimit(n int) Option {
	return func(o *options) { o.rules.OpenLimit = n }
}

// WithDepthLimit sets how many delegations may lead to a task (default 5): a task that was delegated may delegate, and so may
// the turn that announces a result. Deeper calls fail with too_deep.
func WithDepthLimit(n int) Option {
	return func(o *options) { o.rules.DepthLimit = n }
}

// WithPrompts sets where the prompt of a conversation comes from: the prompt of the account in the settings in force (default:
// none). The turn that announces a result gets it, followed by the callback prompt. The function is called in the goroutines of
// partitions when a result is announced, so it must be fast and must not block.
func WithPrompts(prompt func(topics.Origin) string) Option {
	return func(o *options) { o.prompts = prompt }
}

// WithCallbackPrompt sets the section of the system prompt of a turn that announces a result (default CallbackPrompt; at most
// 8 KiB).
func WithCallbackPrompt(prompt string) Option {
	return func(o *options) { o.rules.CallbackPrompt = prompt }
}

// WithCallbackWait sets how long the next result waits until the one before it was announced (default 15 minutes). A turn
// always has an output, so the wait passes only if the agent's turn does not run.
func WithCallbackWait(d time.Duration) Option {
	return func(o *options) { o.rules.CallbackWait = d }
}

// WithRemembered sets for how long delegations that have ended are known (default 24 hours): their IDs are not used again, and
// a call of agent_cancel is told how they ended.
func WithRemembered(d time.Duration) Option {
	return func(o *options) { o.rules.RememberFor = d }
}

// WithRecordLimit sets the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must
// not exceed the producer's max.request.size and the topics' max.message.bytes. Longer results are cut.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the largest row of a session in bytes (default: the record limit less 64 KiB; at least 64 KiB, at most
// the record limit). Calls fail with no_room when the row is full.
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

func optionsOf(agent string, opts []Option) (options, error) {
	o := options{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.Agent, o.rules.Agents = agent, o.agents
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	if o.prompts == nil {
		o.prompts = func(topics.Origin) string { return "" }
	}
	return o, o.rules.validate()
}
