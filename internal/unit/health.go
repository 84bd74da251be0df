package unit

import (
	"errors"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/cut"
)

// State is what a unit is doing.
type State int

// The states of a unit.
const (
	NotStarted State = iota // Run was not called
	Recovering              // joining the group or reading its tables
	Running                 // records flow
	Degraded                // it failed and ends or waits for its restart, or its membership is not confirmed
	Stopped                 // Run has returned
)

// String is the state in lower case.
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

// Health is how a unit is.
type Health struct {
	State State
	Since time.Time // of the state
	// Restarts counts the failures in a row that are not forgotten yet.
	Restarts int
	// Err is the last failure; it stays when the unit has recovered from it.
	Err error
	// Lag is how many records of each claimed partition have not been handed out.
	Lag map[cut.Partition]int64
}

// errTransaction says that the transaction of the open cut failed; what is in flight is still being ended.
var errTransaction = errors.New("unit: the transaction cannot be committed, the unit restarts")

// failing is why the attempt is ending, or nil. What is in flight may keep it from ending for a while.
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

// health keeps what Health tells.
type health struct {
	mu       sync.Mutex
	now      func() time.Time
	hook     func(State)
	state    State
	since    time.Time
	restarts int
	err      error
	once     bool // it was Running
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
