package turn

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/topics"
)

// ErrOption is wrapped by the error that Graph returns for an option that is out of range.
var ErrOption = errors.New("turn: option out of range")

// Policy determines what happens to a message that arrives while a turn of its session runs.
type Policy string

// The policies.
const (
	// Queue lets the message wait for its turn.
	Queue Policy = "queue"
	// Reject answers the message immediately with an error output, code busy.
	Reject Policy = "reject"
	// Supersede is Queue, but a think step that has been silent for Rules.SupersedeAfter while a message waits times out.
	Supersede Policy = "supersede"
)

// Rules configure the transition. All durations are at least 1 ms, except that IdleAfter may be 0, and all counts are at
// least 1. DefaultRules has the defaults.
type Rules struct {
	// ThinkTimeout is how long a think step waits for its think-response.
	ThinkTimeout time.Duration
	// ToolTimeout is how long the calls of a step wait for their results.
	ToolTimeout time.Duration
	// RouteTTL is how long a reply route can be used.
	RouteTTL time.Duration
	// RememberFor and RememberCount bound the memories of finished calls, request ids and applied records, by age and by
	// number. The count is per session and kind.
	RememberFor   time.Duration
	RememberCount int
	// QueueLimit is how many messages may wait behind a session's open turn.
	QueueLimit int
	// Policy determines whether messages wait behind an open turn.
	Policy Policy
	// SupersedeAfter is how long a think step may be silent while another message waits, under the policy Supersede only. A
	// value above ThinkTimeout has no effect.
	SupersedeAfter time.Duration
	// MaxSteps is how often a turn may ask the model.
	MaxSteps int
	// MaxCost is the cost of a session, in the unit of its think-responses (dollars), at which the model is no longer
	// asked; 0 means no limit.
	MaxCost float64
	// History is the longest history that the model is sent; historylimit.go says what happens to longer ones.
	History HistoryLimit
	// Compaction is the compactor that summarizes such a history; nil for none.
	Compaction *Compaction
	// RecordLimit is the maximum size in bytes of a record that is written, including key and headers.
	RecordLimit int
	// accepted are the limits of topics that accept less.
	accepted topicLimits
	// RowLimit is the maximum size in bytes of a session's row, including its parts, the references to them and its
	// deadline. room.go lists what is given up, in which order, if a row would exceed it. A stored row that exceeds a
	// lowered limit is written only if it has not grown, or if its deadline is due.
	RowLimit int
	// Delivery replaces the bearer tokens of rows and outputs by a route_id.
	Delivery bool
	// Agent is the agent's name, which the requests of gates state as their origin.
	Agent string
	// Approval is the policy that says which tool calls wait for a person's approval; nil: none do. It must not be modified.
	Approval *approval.Policy
	// Gates stops the clock of a think step while a gate of another requester that names its turn is open.
	Gates bool
	// SupersedeGates ends the gates of a turn when another message of its session begins to wait.
	SupersedeGates bool
	// Channels reads the members of messages that processors/channel writes, and sends outputs to the origins of messages.
	Channels bool
	// Memoir ends sessions by inactivity and sends the steps for the model by way of the user's memory; nil: off.
	Memoir *Memoir
	// Costs writes what the answers of models cost, and Latencies how long tool calls took.
	Costs, Latencies bool
	// Budgets limit the costs of users and tenants. TenantOf says to which tenant a user belongs; nil: to none.
	Budgets  Budgets
	TenantOf func(user string) string
	// Events writes the turn's part of its event stream: where its steps begin and end, what tools returned, and its end.
	Events bool
	// EventsExist says that the topic of the events exists, so that a turn can end a stream that a worker has begun.
	EventsExist bool
	// BothSpellings writes what the model workers of FlightDeck's SDKs read under other names.
	BothSpellings bool
	// IdleAfter is how long an idle session is kept; 0 means indefinitely.
	IdleAfter time.Duration
}

// rowMargin is how much smaller a row must be than a record: space for the key, the record's frame and a later deadline.
const rowMargin = 64 << 10

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	return Rules{
		ThinkTimeout:  10 * time.Minute,
		ToolTimeout:   5 * time.Minute,
		RouteTTL:      topics.DefaultRouteTTL,
		RememberFor:   24 * time.Hour,
		RememberCount: 1000,
		QueueLimit:    16,
		Policy:        Queue,
		MaxSteps:      100,
		RecordLimit:   envoption.DefaultRecordLimit,
		RowLimit:      envoption.DefaultRecordLimit - rowMargin,
	}
}

// Fixed bounds. Normal use does not reach them; they stop a faulty or malicious producer from filling the row.
const (
	maxID         = limits.MaxID         // bytes of an id, a name, a role, a timestamp
	maxCalls      = 1000                 // tool calls of one think-response
	maxHeld       = 2000                 // records held for the open step, and for steps to come; their bytes are bounded by the row
	maxRoutes     = 256                  // open routes of a session; a new one evicts the oldest
	maxUsedRoutes = 256                  // used routes whose tombstones are awaited
	maxDescriptor = limits.MaxDescriptor // bytes of a reply descriptor
	maxSteps      = 64                   // closed think steps that are remembered, to recognise late responses
	maxReason     = 512                  // bytes of foreign text in an error message
	minHistory    = 1 << 10              // minimum of History.Bytes
	minRecord     = envoption.MinRecordLimit
	minMemory     = 1 << 10 // minimum of Memoir.ContextBytes
)

// validate returns an error for the first rule that is out of range.
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
	case r.Policy != Queue && r.Policy != Reject && r.Policy != Supersede:
		return fmt.Errorf("%w: queue policy is %q, want %q, %q or %q", ErrOption, r.Policy, Queue, Reject, Supersede)
	case r.Policy == Supersede && r.SupersedeAfter < time.Millisecond:
		return fmt.Errorf("%w: supersede limit is %v, want 1ms or more", ErrOption, r.SupersedeAfter)
	case r.History.Bytes != 0 && (r.History.Bytes < minHistory || r.History.Bytes > r.RowLimit):
		return fmt.Errorf("%w: history limit is %d bytes, want %d to %d (the row limit), or 0 for the default",
			ErrOption, r.History.Bytes, minHistory, r.RowLimit)
	case r.History.Messages < 0:
		return fmt.Errorf("%w: history limit is %d messages, want 1 or more, or 0 for any number", ErrOption, r.History.Messages)
	case r.Compaction != nil && r.Compaction.Timeout < time.Millisecond:
		return fmt.Errorf("%w: compaction timeout is %v, want 1ms or more", ErrOption, r.Compaction.Timeout)
	case r.Compaction != nil && r.Compaction.Keep < 1:
		return fmt.Errorf("%w: compaction keeps %d exchanges, want 1 or more", ErrOption, r.Compaction.Keep)
	case r.MaxSteps < 1:
		return fmt.Errorf("%w: step limit is %d, want 1 or more", ErrOption, r.MaxSteps)
	case !(r.MaxCost >= 0 && r.MaxCost <= math.MaxFloat64): // NaN too
		return fmt.Errorf("%w: cost limit is %v, want 0 (none) or more", ErrOption, r.MaxCost)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	case r.Memoir != nil && r.Memoir.After < time.Millisecond:
		return fmt.Errorf("%w: sessions end after %v, want 1ms or more", ErrOption, r.Memoir.After)
	case r.Memoir != nil && (r.Memoir.ContextBytes < minMemory || spellings(r.BothSpellings)*r.Memoir.ContextBytes > r.RecordLimit/2):
		return fmt.Errorf("%w: memory of a user is %d bytes, want %d to %d (half of the record limit, for each spelling)",
			ErrOption, r.Memoir.ContextBytes, minMemory, r.RecordLimit/2/spellings(r.BothSpellings))
	case r.Budgets.Tenant != (Budget{}) && r.TenantOf == nil:
		return fmt.Errorf("%w: tenants have budgets, but no user has a tenant: WithTenants is missing", ErrOption)
	case r.IdleAfter < 0:
		return fmt.Errorf("%w: idle purge is %v, want 0 (off) or more", ErrOption, r.IdleAfter)
	}
	if err := r.Budgets.validate(); err != nil {
		return err
	}
	if r.SupersedeGates && !r.usesGates() {
		return fmt.Errorf("%w: gates are superseded without WithApproval or WithGates", ErrOption)
	}
	if r.Approval != nil {
		if err := r.Approval.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrOption, err)
		}
	}
	return nil
}
