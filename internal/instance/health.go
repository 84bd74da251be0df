package instance

import (
	"errors"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/cut"
)

// State is what an instance is doing.
type State int

// The states of an instance.
const (
	NotStarted State = iota // Run was not called
	Recovering              // joining the group or reading its tables
	Running                 // consuming records
	Degraded                // it failed and is stopping or waits for its restart, or its membership is not confirmed, or offsets are not committed
	Stopped                 // Run has returned
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case NotStarted:
		return "not started"
	case Recovering:
		return "recovering"
	case Running:
		return "running"
	case Degraded:
		return "degraded"
	case Stopped:
		return "stopped"
	}
	return "unknown"
}

// Health is a snapshot of an instance's state.
type Health struct {
	State State
	Since time.Time // when the state was entered
	// Restarts counts consecutive failures; it starts again at zero when records were committed, or after Restart.Reset.
	Restarts int
	// Err is the last failure, also that of a handler that is called again, or why offsets are not committed. A failure stays
	// after the instance has recovered from it.
	Err error
	// Lag is how many records of each claimed partition have not been handed to Goka.
	Lag map[cut.Partition]int64
}

// errTransaction says that the transaction of the open cut failed; records in flight are still being finished.
var errTransaction = errors.New("instance: the transaction cannot be committed, the instance restarts")

// failing returns why the run is ending, or nil. Records in flight may delay its end.
func (r *run) failing() error {
	if g := r.currentGroup(); g != nil && g.Err() != nil {
		if cause := r.failure(); cause != nil {
			return cause
		}
		return g.Err()
	}
	if r.transactionFailed() {
		return errTransaction
	}
	return nil
}

// tolerableCuts is how many cuts in a row may fail to commit before the instance reports that it is degraded: a coordinator
// that moves to another broker costs one or two.
const tolerableCuts = 3

// uncommitted returns how many consecutive cuts could not commit their offsets, and why.
func (r *run) uncommitted() (cuts int, last error) {
	g := r.currentGroup()
	if g == nil {
		return 0, nil
	}
	s := g.Current()
	if s == nil {
		return 0, nil
	}
	return s.Uncommitted()
}

// health holds the state that Health returns.
type health struct {
	mu       sync.Mutex
	now      func() time.Time
	hook     func(State)
	state    State
	since    time.Time
	restarts int
	err      error
	once     bool // the instance was Running at some time
}

func (h *health) enter(s State) {
	h.mu.Lock()
	same := h.state == s
	if !same {
		h.state, h.since = s, h.now()
	}
	h.once = h.once || s == Running
	h.mu.Unlock()
	if !same && h.hook != nil {
		h.hook(s)
	}
}

func (h *health) failed(err error, restarts int) {
	h.mu.Lock()
	h.err, h.restarts = err, restarts
	h.mu.Unlock()
}

// note keeps the error of a failure after which the instance runs on.
func (h *health) note(err error) {
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
}

func (h *health) ran() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.once
}

func (h *health) get() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Health{State: h.state, Since: h.since, Restarts: h.restarts, Err: h.err}
}
