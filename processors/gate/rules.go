package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
)

// ErrOption is wrapped by every error of Graph and GrantsGraph about an option that is out of range.
var ErrOption = errors.New("gate: option out of range")

// Rules are the settings of a transition. Every duration and count is positive.
type Rules struct {
	// Agent is the agent of requests that name none.
	Agent string
	// Channels says that people are asked, and decide, on the channels that requests come from.
	Channels bool
	// Policy is evaluated when a request arrives and when a decision is applied.
	Policy approval.Policy
	// SessionGrant and AgentGrant are how long a standing approval counts that a decision gives.
	SessionGrant, AgentGrant time.Duration
	// HoldFor is how long a decision waits for its request.
	HoldFor time.Duration
	// RememberFor is how long ended gates are remembered. RememberCount bounds the digests of those without an outcome in
	// the row.
	RememberFor   time.Duration
	RememberCount int
	// OpenLimit is how many gates of a session may be open.
	OpenLimit int
	// RecordLimit is the largest record in bytes, including key and headers.
	RecordLimit int
	// RowLimit is the largest row of a session in bytes.
	RowLimit int
}

// rowMargin is the difference between the default row limit and the record limit. It leaves room for the key, the
// record's framing, and a deadline that changes after the row was measured.
const rowMargin = 64 << 10

// defaultRules returns the defaults of all options.
func defaultRules() Rules {
	return Rules{
		SessionGrant:  24 * time.Hour,
		AgentGrant:    30 * 24 * time.Hour,
		HoldFor:       10 * time.Minute,
		RememberFor:   24 * time.Hour,
		RememberCount: 1000,
		OpenLimit:     256,
		RecordLimit:   envoption.DefaultRecordLimit,
		RowLimit:      envoption.DefaultRecordLimit - rowMargin,
	}
}

// Bounds that are not options. They limit what untrusted records can store in a row.
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

// validate returns an error that names the first rule that is out of range.
func (r Rules) validate() error {
	if err := r.Policy.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	for i, rule := range r.Policy.Rules {
		if rule.Schema != nil && checkSchema(rule.Schema) != nil {
			return fmt.Errorf("%w: policy: rule %d: schema cannot be used", ErrOption, i+1)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"time of a session's grant", r.SessionGrant},
		{"time of an agent's grant", r.AgentGrant},
		{"hold time", r.HoldFor},
		{"remember time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	switch {
	case r.RememberCount < 1:
		return fmt.Errorf("%w: remember count is %d, want 1 or more", ErrOption, r.RememberCount)
	case r.OpenLimit < 1:
		return fmt.Errorf("%w: open limit is %d, want 1 or more", ErrOption, r.OpenLimit)
	case r.RecordLimit < minRecord:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, minRecord)
	case r.RowLimit < minRecord-rowMargin || r.RowLimit > r.RecordLimit:
		return fmt.Errorf("%w: row limit is %d bytes, want %d to %d (the record limit)",
			ErrOption, r.RowLimit, minRecord-rowMargin, r.RecordLimit)
	}
	return nil
}
