package memoir

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrOption is wrapped by every error of Graph about an option that is out of range.
var ErrOption = errors.New("memoir: option out of range")

// Rules are the settings of a transition. See the options of the same names.
type Rules struct {
	// Limit is the longest memory in bytes.
	Limit int
	// PassTimeout is how long a pass may take, and Passes is how many passes of a session may fail.
	PassTimeout time.Duration
	Passes      int
	// Patience is how long the first pass of a session waits while another pass of the user is open.
	Patience time.Duration
	// Backoff is the wait after the first failed pass. It doubles with each further one.
	Backoff time.Duration
	// PendingLimit is how many ended sessions of a user are kept for further passes.
	PendingLimit int
	// RememberFor and RememberCount bound the digests by which a row deduplicates.
	RememberFor   time.Duration
	RememberCount int
	// RecordLimit is the largest record in bytes, including key and headers.
	RecordLimit int
}

// defaultRules returns the defaults of all options.
func defaultRules() Rules {
	return Rules{
		Limit:         64 << 10,
		PassTimeout:   30 * time.Minute,
		Passes:        3,
		Patience:      10 * time.Second,
		Backoff:       time.Minute,
		PendingLimit:  64,
		RememberFor:   7 * 24 * time.Hour,
		RememberCount: 1000,
		RecordLimit:   envoption.DefaultRecordLimit,
	}
}

// Bounds that are not options.
const (
	minLimit     = 1 << 10
	maxConflicts = 100  // passes of a session that were based on an old version of the memory
	envelope     = 1024 // bytes of a record that are neither its key nor its value
	maxBackoff   = time.Hour
	maxPending   = 1000
	maxRemember  = 4000 // IDs, of 12 bytes each
)

// validate returns an error that names the first rule that is out of range.
func (r Rules) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"pass timeout", r.PassTimeout},
		{"backoff", r.Backoff},
		{"remember time", r.RememberFor},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, want 1ms or more", ErrOption, d.name, d.value)
		}
	}
	switch {
	case r.RecordLimit < envoption.MinRecordLimit:
		return fmt.Errorf("%w: record limit is %d bytes, want %d or more", ErrOption, r.RecordLimit, envoption.MinRecordLimit)
	case r.Limit < minLimit || r.Limit > r.RecordLimit/2:
		return fmt.Errorf("%w: limit is %d bytes, want %d to %d (half of the record limit)", ErrOption, r.Limit, minLimit, r.RecordLimit/2)
	case r.Patience < 0:
		return fmt.Errorf("%w: patience is %v, want 0 or more", ErrOption, r.Patience)
	case r.Passes < 1:
		return fmt.Errorf("%w: passes are %d, want 1 or more", ErrOption, r.Passes)
	case r.PendingLimit < 1 || r.PendingLimit > maxPending:
		return fmt.Errorf("%w: pending limit is %d, want 1 to %d", ErrOption, r.PendingLimit, maxPending)
	case r.RememberCount < 1 || r.RememberCount > maxRemember:
		return fmt.Errorf("%w: remember count is %d, want 1 to %d", ErrOption, r.RememberCount, maxRemember)
	}
	return nil
}

// backoff returns the wait after a number of failed passes.
func (r Rules) backoff(failures uint32) time.Duration {
	d := r.Backoff
	for ; failures > 1 && d < maxBackoff; failures-- {
		d *= 2
	}
	return max(r.Backoff, min(d, maxBackoff))
}
