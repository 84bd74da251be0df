package peer

import (
	"time"

	"github.com/turntable-streams/turntable/processors/peer/settings"
)

// Option sets a rule of Graph and ChainGraph, which check the values and return an error that names the first option that is
// out of range.
type Option func(*options)

type options struct {
	rules         rules
	rowLimit      int // 0: the record limit less rowMargin
	agents        []string
	gates         bool
	auditAgent    string
	configuration func() *settings.Settings
}

// WithSettings sets where the configuration comes from, for example settings.File.Settings. Graph requires it. The function
// is called in the goroutines of partitions when a task begins or ends.
func WithSettings(current func() *settings.Settings) Option {
	return func(o *options) { o.configuration = current }
}

// WithAgents sets further agents of this instance: the tasks of peers may be for them, and their tool calls are read. Their
// topics must exist, with as many partitions as those of the group's agent.
func WithAgents(agents ...string) Option {
	return func(o *options) { o.agents = agents }
}

// WithGates makes the group read and write the gates of all agents: the run of a peer's task that waits for a person is rejected, and
// can be retried once a person has approved it. Without it, such a run takes until its deadline. The topics of package
// processors/gate must exist.
func WithGates() Option {
	return func(o *options) { o.gates = true }
}

// WithAuditAgent sets the agent whose ChainGraph makes the audit of this instance (default: the group's agent). An instance
// with several groups needs one audit for all of them.
func WithAuditAgent(agent string) Option {
	return func(o *options) { o.auditAgent = agent }
}

// WithTaskTime sets how long a task may take that the tool delegates, with all attempts and waits (default 4 minutes). A
// timeoutMs in the tool's input can shorten it. Set it below the turn's timeout of tool calls (turn.WithToolTimeout): a result
// after that is too late. A task whose sink died during an attempt ends up to WithLease later.
func WithTaskTime(d time.Duration) Option {
	return func(o *options) { o.rules.TaskTime = d }
}

// WithRunTime sets how long the task of a peer may take (default 10 minutes). Its request can shorten it. The turn is then
// cancelled.
func WithRunTime(d time.Duration) Option {
	return func(o *options) { o.rules.RunTime = d }
}

// WithRetry sets the bounds of the wait between two attempts (default 1 s and 30 s). The wait doubles with each failure.
func WithRetry(initial, longest time.Duration) Option {
	return func(o *options) { o.rules.RetryInitial, o.rules.RetryLongest = initial, longest }
}

// WithLease sets how long after its timeout an attempt without a receipt counts as lost (default 15 s).
func WithLease(d time.Duration) Option {
	return func(o *options) { o.rules.Lease = d }
}

// WithWaitForApproval lets a task of a peer wait for a person if it was sent with Prefer: respond-async: the task stays open until
// the gate has ended, and its time stops meanwhile. Otherwise, and for all other tasks, the task is rejected.
func WithWaitForApproval() Option {
	return func(o *options) { o.rules.WaitForApproval = true }
}

// WithGateGrace sets how long a gate of a run may be open before the run is rejected (default 1 s). A standing approval or a
// policy of the gates ends a gate within milliseconds.
func WithGateGrace(d time.Duration) Option {
	return func(o *options) { o.rules.GateGrace = d }
}

// WithRemembered sets for how long the reply of a task is told again (default 24 hours). After that, the same task ID is a new
// task. For as long, a call of a rejected task can be approved, and after that, the peer can use the approval.
func WithRemembered(d time.Duration) Option {
	return func(o *options) { o.rules.RememberFor = d }
}

// WithTaskLimit sets how many tasks of a session may be open (default 64). Further ones fail at once.
func WithTaskLimit(n int) Option {
	return func(o *options) { o.rules.TaskLimit = n }
}

// WithSubAgents lets sub-agents delegate, whose session IDs have "--". They are refused otherwise.
func WithSubAgents() Option {
	return func(o *options) { o.rules.SubAgents = true }
}

// WithRecordLimit sets the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must
// not exceed the producer's max.request.size and the topics' max.message.bytes.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the largest row of a session in bytes (default: the record limit less 64 KiB; at least 64 KiB, at most
// the record limit).
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

func optionsOf(opts []Option) (options, error) {
	o := options{rules: defaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	return o, o.rules.validate()
}
