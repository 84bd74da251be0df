package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
)

// ErrOption is wrapped by errors about an option that is out of range.
var ErrOption = errors.New("fold: option out of range")

// Rules are the options of a transition. All durations and counts are positive, except where 0 is stated.
type Rules struct {
	// WindowCount, WindowBytes and GapAfter limit how many records, how many bytes of them, and for how long a turn holds
	// while an earlier record is missing.
	WindowCount int
	WindowBytes int
	GapAfter    time.Duration
	// Grace is how long a turn with a done event waits for the terminal record after its last record, while no record is
	// missing.
	Grace time.Duration
	// Silence is after how long without a record a turn expires.
	Silence time.Duration
	// OpenLimit is the maximum number of open turns of a session.
	OpenLimit int
	// TurnLimit is the maximum size of a turn's events, in bytes of its Log.
	TurnLimit int
	// SessionLimit is the maximum size of the events of all open turns of a session, in bytes; 0 for no limit.
	SessionLimit int
	// RecordLimit is the maximum size of a record, in bytes with key and headers.
	RecordLimit int
	// A session remembers at least the last RememberCount closed turns for RememberFor.
	RememberFor   time.Duration
	RememberCount int
	// ThinkResponses enables think-responses: see WithThinkResponses.
	ThinkResponses bool
	// Gates makes paused runs wait for decisions: see WithGates. GateTimeout is the deadline of their gates.
	Gates       bool
	GateTimeout time.Duration
}

const (
	// tailLimit is the maximum number of bytes of a turn's events in the row. They are written with every row, once per
	// cut. A part has an overhead of about 40 bytes.
	tailLimit = 256
	// recordMargin is how far parts and turns stay below the record limit, for key, framing and tail.
	recordMargin = 64 << 10
	// rowReserve is the size of a row without the events of its turns, if the table has no parts.
	rowReserve  = 96 << 10
	maxTurnID   = 256
	minRecord   = envoption.MinRecordLimit
	minTurn     = 1 << 10 // minimum of TurnLimit
	maxOpen     = 256     // maximum of OpenLimit
	maxWindow   = 10_000  // maximum of WindowCount
	maxRemember = 16 * pageEntries
	// mostGateTimeout is the longest deadline of a gate, and gateMargin how much longer a turn waits for its outcome.
	mostGateTimeout = 30 * 24 * time.Hour
	gateMargin      = 5 * time.Minute
	// maxGates is the maximum number of open gates of a turn, and of the outcomes that a session holds.
	maxGates = 256
)

// DefaultRules returns the default rules.
func DefaultRules() Rules {
	return Rules{
		WindowCount: 256, WindowBytes: 256 << 10, GapAfter: 30 * time.Second,
		Grace: 5 * time.Second, Silence: 30 * time.Minute,
		OpenLimit: 16, TurnLimit: envoption.DefaultRecordLimit - recordMargin, RecordLimit: envoption.DefaultRecordLimit,
		RememberFor: 24 * time.Hour, RememberCount: 512,
		GateTimeout: approval.DefaultTTL,
	}
}

// gateWait returns after how long a turn whose gates have no outcome expires.
func (r Rules) gateWait() time.Duration { return r.GateTimeout + gateMargin }

// eventLimit returns the maximum size of an event, which must fit into a part.
func (r Rules) eventLimit() int { return max(r.RecordLimit-recordMargin, r.RecordLimit/2) }

// validate returns an error about the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"time a gap may stay open", r.GapAfter},
		{"grace", r.Grace},
		{"silence", r.Silence},
		{"remembered time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	if r.GateTimeout < time.Millisecond || r.GateTimeout > mostGateTimeout {
		return fmt.Errorf("%w: gate timeout is %v, want 1ms to %v", ErrOption, r.GateTimeout, mostGateTimeout)
	}
	for _, n := range []struct {
		name         string
		value        int
		least, above int
	}{
		{"window in records", r.WindowCount, 1, maxWindow},
		{"window in bytes", r.WindowBytes, 1, 1 << 30},
		{"open limit", r.OpenLimit, 1, maxOpen},
		{"record limit", r.RecordLimit, minRecord, 1 << 30},
		{"turn limit", r.TurnLimit, minTurn, 1 << 30},
		{"remembered count", r.RememberCount, 1, maxRemember},
	} {
		if n.value < n.least || n.value > n.above {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrOption, n.name, n.value, n.least, n.above)
		}
	}
	return nil
}
