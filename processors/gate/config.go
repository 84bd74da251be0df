package gate

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
)

// ErrConfig is wrapped by the errors of Graph and GrantsGraph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("gate: invalid configuration")

// Config configures Graph and GrantsGraph. Give both the same one. Fields that are zero have their defaults.
type Config struct {
	// Policy is the policy of the gates. The zero Policy asks for every request and waits for 10 minutes. It is evaluated when a
	// request arrives, and again for the arguments that are approved: a rule that denies overrides the approval. A policy that
	// allows approves the requests of requesters without a policy. Policy.Shadow has no effect here: the requester decides whether
	// it waits.
	Policy approval.Policy
	// SessionGrant and AgentGrant are how long a standing approval counts that a decision gives for the session (default 24 hours)
	// and for the agent (default 30 days). Both are at least 1 ms.
	SessionGrant, AgentGrant time.Duration
	// Hold is how long a decision that arrives before its request waits for it (default 10 minutes, at least 1 ms). After that, it
	// is dead-lettered.
	Hold time.Duration
	// RememberFor is how long ended gates are remembered (default 24 hours, at least 1 ms), and RememberCount how many of them
	// beside the 256 whose outcome is kept (default 1000, at least 1). After that, a repeated request is a new gate.
	RememberFor   time.Duration
	RememberCount int
	// OpenLimit is how many gates of a session may be open (default 256, at least 1). Further requests are denied, with the cause
	// no_room.
	OpenLimit int
	// RecordLimit is the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must not exceed
	// the producer's max.request.size and the topics' max.message.bytes.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes (default: RecordLimit less 64 KiB; at least 64 KiB, at most RecordLimit).
	RowLimit int
	// Channels makes the group ask people on the channels that requests come from (topics.GateRequest.Channel): it writes the
	// questions, and what became of them, to "{agent}-channel-messages", and accepts the decisions that people write there. The
	// topic must exist (topics.WithChannels), and delivery.Config.Channels must be set for it to be read. Otherwise no one is asked
	// on a channel, and the decisions of channels are dead-lettered.
	Channels bool
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// Bounds that are not configured. They limit what untrusted records can store in a row.
const (
	maxID          = 1 << 10   // bytes of IDs and names
	maxText        = 16 << 10  // bytes of the reason of a decision
	maxMessage     = 64 << 10  // bytes of the message of a request, of its options, and of its schema
	maxValue       = 256 << 10 // bytes of arguments, and of edited arguments and answers
	maxAllowed     = 16        // verdicts that a request allows
	maxSchemaSteps = 100_000   // how often schema objects are applied to a value
	maxKept        = 4 << 10   // bytes of edited arguments and of an answer that are kept after the outcome
	maxClosed      = 256       // ended gates whose outcome is kept
	maxEarly       = 512       // records that wait for their request
	maxNoRoom      = 64        // open gates that are stored without their request
	maxGrants      = 1000      // grants of an agent
	maxOwnGrants   = 100       // grants of a session

	longestWait = approval.MaxTTL // latest deadline of a gate, from its request
	closeAgain  = time.Minute     // until a close that did not come back is written again
	maxAhead    = time.Minute     // how far the clock of a record's writer may be ahead
	minRecord   = envoption.MinRecordLimit
)

func (c *Config) complete() error {
	var check bounds.Check
	if err := c.Policy.Validate(); err != nil {
		check.Wrong("Policy", "is invalid: %w", err)
	}
	for i, rule := range c.Policy.Rules {
		if rule.Schema != nil && checkSchema(rule.Schema) != nil {
			check.Wrong("Policy", "has rule %d with a schema that cannot be used", i+1)
		}
	}
	bounds.AtLeast(&check, "SessionGrant", &c.SessionGrant, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "AgentGrant", &c.AgentGrant, 30*24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "Hold", &c.Hold, 10*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RememberCount", &c.RememberCount, 1000, 1)
	bounds.AtLeast(&check, "OpenLimit", &c.OpenLimit, 256, 1)
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord)
	bounds.Between(&check, "RowLimit", &c.RowLimit, c.RecordLimit-rowMargin, minRecord-rowMargin, c.RecordLimit)
	return check.Err(ErrConfig)
}
