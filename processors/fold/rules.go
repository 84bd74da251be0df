package fold

import (
	"errors"
	"fmt"
	"time"
)

// ErrOption is wrapped by every error about an option that is out of range.
var ErrOption = errors.New("fold: option out of range")

// Rules are what a transition needs to know besides row, input and time. Every duration and count is positive.
type Rules struct {
	// WindowCount and WindowBytes bound what a turn holds that came ahead of a missing record, GapAfter for how long.
	WindowCount int
	WindowBytes int
	GapAfter    time.Duration
	// Grace is how long the terminal record is waited for after a done event, once no record is known to be missing.
	Grace time.Duration
	// Silence is after how long without a record a turn expires.
	Silence time.Duration
	// OpenLimit is how many turns of a session may be open.
	OpenLimit int
	// TurnLimit is how many bytes of events a turn may have.
	TurnLimit int
	// SessionLimit is how many bytes of events all open turns of a session may have; 0 for no limit but theirs.
	SessionLimit int
	// RecordLimit is the size in bytes up to which a record may be written, with key and headers.
	RecordLimit int
	// RememberFor and RememberCount bound what a session remembers of closed turns: at least so many are remembered for
	// so long.
	RememberFor   time.Duration
	RememberCount int
	// ThinkResponses has closed turns go on as think-responses.
	ThinkResponses bool
}

const (
	// tailLimit is how many bytes of a turn's events stand in the row, at most: they are written with every row, of which
	// a cut has one. A part costs some 40 bytes besides its own.
	tailLimit = 256
	// recordMargin is what parts and turns stay below the limit of a record: key, frame, a tail.
	recordMargin = 64 << 10
	// rowReserve is what a row has besides the events of its turns, where no part of it stands apart.
	rowReserve  = 96 << 10
	maxTurnID   = 256
	minRecord   = 128 << 10 // least sensible RecordLimit
	minTurn     = 1 << 10   // least sensible TurnLimit
	maxOpen     = 256       // most sensible OpenLimit
	maxWindow   = 10_000    // most sensible WindowCount
	maxRemember = 16 * pageEntries
)

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules {
	const recordLimit = 1 << 20 // what a Kafka producer sends by default (max.request.size)
	return Rules{
		WindowCount: 256, WindowBytes: 256 << 10, GapAfter: 30 * time.Second,
		Grace: 5 * time.Second, Silence: 30 * time.Minute,
		OpenLimit: 16, TurnLimit: recordLimit - recordMargin, RecordLimit: recordLimit,
		RememberFor: 24 * time.Hour, RememberCount: 512,
	}
}

// eventLimit is how large an event may be: it must fit into a part.
func (r Rules) eventLimit() int { return max(r.RecordLimit-recordMargin, r.RecordLimit/2) }

// validate names the first rule that is out of range.
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
