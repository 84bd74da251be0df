package peer

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrConfig is wrapped by the errors of Graph about a Config. They name each field that is missing or out of its bounds.
var ErrConfig = errors.New("peer: invalid configuration")

// ToolName is the name of the tool with which a model delegates a task to a peer.
const ToolName = "delegate_to_peer"

// Config configures Graph. Settings is required. Other fields that are zero have their defaults.
type Config struct {
	// Settings returns the settings in force, for example SettingsFile.Settings. Required. The function is called in the goroutines
	// of partitions when a task begins or ends.
	Settings func() *Settings
	// Agents are further agents of this instance: the tasks of peers may be for them, and their tool calls are read. Their topics must
	// exist, with as many partitions as those of the group's agent.
	Agents []string
	// Gates makes the group read and write the gates of all agents: the run of a peer's task that waits for a person is rejected, and
	// can be retried once a person has approved it. Without it, such a run takes until its deadline. The topics of package
	// processors/gate must exist.
	Gates bool
	// AuditAgent is the agent whose ChainGraph makes the audit of this instance (default: the group's agent). An instance with several
	// groups needs one audit for all of them.
	AuditAgent string
	// TaskTime is how long a task may take that the tool delegates, with all attempts and waits (default 4 minutes, at least 1 ms). A
	// timeoutMs in the tool's input can shorten it. Set it below the turn's timeout of tool calls (turn.Config.ToolTimeout): a result
	// after that is too late. A task whose sink died during an attempt ends up to Lease later.
	TaskTime time.Duration
	// RunTime is how long the task of a peer may take (default 10 minutes, at least 1 ms). Its request can shorten it. The turn is then
	// cancelled.
	RunTime time.Duration
	// RetryInitial and RetryLongest bound the wait between two attempts (default 1 s and 30 s, at least 1 ms). The wait doubles with
	// each failure.
	RetryInitial, RetryLongest time.Duration
	// Lease is how long after its timeout an attempt without a receipt counts as lost (default 15 s, at least 1 ms).
	Lease time.Duration
	// WaitForApproval lets a task of a peer wait for a person if it was sent with Prefer: respond-async: the task stays open until the
	// gate has ended, and its time stops meanwhile. Otherwise, and for all other tasks, the task is rejected.
	WaitForApproval bool
	// GateGrace is how long a gate of a run may be open before the run is rejected (default 1 s, at least 1 ms). A standing approval or
	// a policy of the gates ends a gate within milliseconds.
	GateGrace time.Duration
	// RememberFor is for how long the reply of a task is told again (default 24 hours, at least 1 ms). After that, the same task ID is a
	// new task. For as long, a call of a rejected task can be approved, and after that, the peer can use the approval.
	RememberFor time.Duration
	// TaskLimit is how many tasks of a session may be open (default 64, at least 1). Further ones fail at once.
	TaskLimit int
	// SubAgents lets sub-agents delegate, whose session IDs have "--". They are refused otherwise.
	SubAgents bool
	// RecordLimit is the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must not exceed the
	// producer's max.request.size and the topics' max.message.bytes.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes (default: RecordLimit less 64 KiB; at least 64 KiB, at most RecordLimit).
	RowLimit int
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// Bounds that are not configured.
const (
	maxWaiters = 64          // requests that wait for a task
	maxResult  = 512 << 10   // bytes of the result of a run
	writeAgain = time.Minute // until a settle or an end that did not come back is written again
	maxAhead   = time.Minute // how far the clock of a record's writer may be ahead
	minRecord  = envoption.MinRecordLimit
)

func (c *Config) complete() error {
	var check bounds.Check
	if c.Settings == nil {
		check.Wrong("Settings", "is nil, want a function")
	}
	// The task time is less than a turn waits for a tool, also with the lease of the last attempt.
	bounds.AtLeast(&check, "TaskTime", &c.TaskTime, 4*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RunTime", &c.RunTime, 10*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RetryInitial", &c.RetryInitial, time.Second, time.Millisecond)
	bounds.AtLeast(&check, "RetryLongest", &c.RetryLongest, 30*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "Lease", &c.Lease, 15*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "GateGrace", &c.GateGrace, time.Second, time.Millisecond)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "TaskLimit", &c.TaskLimit, 64, 1)
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord)
	bounds.Between(&check, "RowLimit", &c.RowLimit, c.RecordLimit-rowMargin, minRecord-rowMargin, c.RecordLimit)
	return check.Err(ErrConfig)
}
