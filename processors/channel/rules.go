package channel

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrOption is wrapped by every error of Graph about an option that is out of range.
var ErrOption = errors.New("channel: option out of range")

// Rules are the settings of a transition. Every duration and count is positive.
type Rules struct {
	// Agent is the agent of the group, and Agents are those that it may delegate to.
	Agent  string
	Agents []string
	// Peers says that tasks may be delegated to peers.
	Peers bool
	// Deadline is how long a delegation may take.
	Deadline time.Duration
	// OpenLimit is how many delegations of a session may be open.
	OpenLimit int
	// DepthLimit is how many delegations may lead to a task.
	DepthLimit int
	// CallbackWait is how long the next callback message waits for the output of the one before it.
	CallbackWait time.Duration
	// RememberFor is how long delegations that have ended are known.
	RememberFor time.Duration
	// CallbackPrompt is the section of the system prompt of a turn that announces a result.
	CallbackPrompt string
	// RecordLimit is the largest record in bytes, including key and headers.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes.
	RowLimit int
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	return Rules{
		Deadline:       10 * time.Minute,
		OpenLimit:      500,
		DepthLimit:     5,
		CallbackWait:   15 * time.Minute,
		RememberFor:    24 * time.Hour,
		CallbackPrompt: CallbackPrompt,
		RecordLimit:    envoption.DefaultRecordLimit,
		RowLimit:       envoption.DefaultRecordLimit - rowMargin,
	}
}

// Bounds that are not options.
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

// validate returns an error that names the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"deadline", r.Deadline},
		{"callback wait", r.CallbackWait},
		{"remember time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	switch {
	case r.OpenLimit < 1:
		return fmt.Errorf("%w: open limit is %d, want 1 or more", ErrOption, r.OpenLimit)
	case r.DepthLimit < 1:
		return fmt.Errorf("%w: depth limit is %d, want 1 or more", ErrOption, r.DepthLimit)
	case r.CallbackPrompt == "" || len(r.CallbackPrompt) > maxPrompt/2:
		return fmt.Errorf("%w: callback prompt has %d bytes, want 1 to %d", ErrOption, len(r.CallbackPrompt), maxPrompt/2)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	}
	return nil
}
