package turn

import (
	"errors"
	"fmt"
	"time"
)

// ErrOption is wrapped by every error about an option or an environment variable that is out of range.
var ErrOption = errors.New("turn: option out of range")

// Policy says what becomes of a message that comes while a turn of its session runs.
type Policy string

// The policies.
const (
	// Queue lets the message wait for its turn.
	Queue Policy = "queue"
	// Reject answers it at once with an error output, code busy.
	Reject Policy = "reject"
)

// Rules are what a transition needs to know besides state, event and time. Every duration is positive except IdleAfter,
// every count too.
type Rules struct {
	// ThinkTimeout is how long a think step waits for its think-response.
	ThinkTimeout time.Duration
	// ToolTimeout is how long the calls of a step wait for their results.
	ToolTimeout time.Duration
	// RouteTTL is how long a reply route waits to be used.
	RouteTTL time.Duration
	// RememberFor and RememberCount bound what is remembered of the past: ids of finished calls, request ids, records
	// that were applied. The count is per session and kind.
	RememberFor   time.Duration
	RememberCount int
	// QueueLimit is how many messages may wait behind a session's open turn.
	QueueLimit int
	Policy     Policy
	// RecordLimit is the size in bytes up to which a record may be written, with key and headers.
	RecordLimit int
	// RowLimit is the size in bytes up to which the row of a session may grow, as it is written: with its parts, their
	// names and its deadline. See room.go for what is given up, and in which order, where a row would exceed it. A row
	// that exceeds a lowered limit as it is found is written only if it has not grown, or if its deadline came.
	RowLimit int
	// Delivery keeps bearer tokens out of rows and outputs: a route_id stands in for them.
	Delivery bool
	// IdleAfter is how long a session with no open turn stays; zero is for ever.
	IdleAfter time.Duration
}

// rowMargin is what a row stays below the limit of a record: its key, the record's frame, a deadline that moves.
const rowMargin = 64 << 10

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	const recordLimit = 1 << 20 // what a Kafka producer sends by default (max.request.size)
	return Rules{
		ThinkTimeout:  10 * time.Minute,
		ToolTimeout:   5 * time.Minute,
		RouteTTL:      24 * time.Hour,
		RememberFor:   24 * time.Hour,
		RememberCount: 1000,
		QueueLimit:    16,
		Policy:        Queue,
		RecordLimit:   recordLimit,
		RowLimit:      recordLimit - rowMargin,
	}
}

// Bounds that are no options: nobody sane meets them, and without them a stranger fills the row.
const (
	maxID         = 1024      // bytes of an id, a name, a role, a timestamp
	maxCalls      = 1000      // tool calls of one think-response
	maxHeld       = 2000      // records held for the open step, and for steps to come; their bytes are bounded by the row
	maxRoutes     = 64        // open routes of a session; a new one evicts the oldest
	maxUsedRoutes = 64        // used routes whose tombstones are awaited
	maxDescriptor = 64 << 10  // bytes of a reply descriptor
	maxSteps      = 64        // closed think steps that are remembered (R21)
	maxReason     = 512       // bytes of foreign text in an error message
	minRecord     = 128 << 10 // least sensible RecordLimit
)

// validate names the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"think timeout", r.ThinkTimeout},
		{"tool timeout", r.ToolTimeout},
		{"route TTL", r.RouteTTL},
		{"remembered time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	switch {
	case r.RememberCount < 1:
		return fmt.Errorf("%w: remembered count is %d, want 1 or more", ErrOption, r.RememberCount)
	case r.QueueLimit < 1:
		return fmt.Errorf("%w: queue limit is %d, want 1 or more", ErrOption, r.QueueLimit)
	case r.Policy != Queue && r.Policy != Reject:
		return fmt.Errorf("%w: queue policy is %q, want %q or %q", ErrOption, r.Policy, Queue, Reject)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	case r.IdleAfter < 0:
		return fmt.Errorf("%w: idle purge is %v, want 0 (off) or more", ErrOption, r.IdleAfter)
	}
	return nil
}
