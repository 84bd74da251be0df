package peer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrOption is wrapped by every error of Graph and ChainGraph about an option that is missing or out of range.
var ErrOption = errors.New("peer: option out of range")

// ToolName is the name of the tool with which a model delegates a task to a peer.
const ToolName = "delegate_to_peer"

// rules are the settings of a transition. Every duration and count is positive.
type rules struct {
	// TaskTime is how long a task of the tool may take, with all attempts. RunTime is how long the task of a peer may take.
	TaskTime, RunTime time.Duration
	// RetryInitial and RetryLongest bound the wait between two attempts.
	RetryInitial, RetryLongest time.Duration
	// Lease is how long after its timeout an attempt without a receipt counts as lost.
	Lease time.Duration
	// GateGrace is how long a gate may be open before its run is rejected: a standing approval ends it at once.
	GateGrace time.Duration
	// WaitForApproval says that detached runs wait for a person instead of being rejected.
	WaitForApproval bool
	// RememberFor is how long tasks that have ended are told again, calls of rejected runs can be approved, and
	// approvals can be used.
	RememberFor time.Duration
	// TaskLimit is how many tasks of a session may be open.
	TaskLimit int
	// Agents are those of the instance. Nil means any.
	Agents []string
	// SubAgents says that sub-agents may delegate.
	SubAgents bool
	// RecordLimit is the largest record in bytes, including key and headers.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes.
	RowLimit int
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// defaultRules returns the defaults of all options.
func defaultRules() rules {
	return rules{
		TaskTime:     4 * time.Minute, // less than a turn waits for a tool, also with the lease of the last attempt
		RunTime:      10 * time.Minute,
		RetryInitial: time.Second,
		RetryLongest: 30 * time.Second,
		Lease:        15 * time.Second,
		GateGrace:    time.Second,
		RememberFor:  24 * time.Hour,
		TaskLimit:    64,
		RecordLimit:  envoption.DefaultRecordLimit,
		RowLimit:     envoption.DefaultRecordLimit - rowMargin,
	}
}

// Bounds that are not options.
const (
	maxWaiters = 64          // requests that wait for a task
	maxResult  = 512 << 10   // bytes of the result of a run
	writeAgain = time.Minute // until a settle or an end that did not come back is written again
	maxAhead   = time.Minute // how far the clock of a record's writer may be ahead
	minRecord  = envoption.MinRecordLimit
)

func (r rules) runsTasksOf(agent string) bool {
	return r.Agents == nil || slices.Contains(r.Agents, agent)
}

// validate returns an error that names the first rule that is out of range.
func (r rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"task time", r.TaskTime},
		{"run time", r.RunTime},
		{"first retry", r.RetryInitial},
		{"longest retry", r.RetryLongest},
		{"lease", r.Lease},
		{"gate grace", r.GateGrace},
		{"remember time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	switch {
	case r.TaskLimit < 1:
		return fmt.Errorf("%w: task limit is %d, want 1 or more", ErrOption, r.TaskLimit)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	}
	return nil
}
