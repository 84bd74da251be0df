package cost

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/digests"
)

// ErrConfig is wrapped by the errors of Graph and SpendingGraph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("cost: invalid configuration")

// Config configures Graph and SpendingGraph. Give both the same one. Fields that are zero have their defaults.
type Config struct {
	// RememberFor is for how long a row remembers the IDs of the records that it has added (default 24 hours, 1 s to 10 years), and
	// RememberCount how many of them (default 1000, 1 to 10,000). A record that is repeated later is added twice. Each ID takes 12
	// bytes, which are written with each record of the row. Set RememberCount higher than the number of records that a user's or tenant's calls have
	// between two commits of the processor, because a crash repeats as many.
	RememberFor   time.Duration
	RememberCount int
}

func (c *Config) complete() error {
	var check bounds.Check
	bounds.Between(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Second, 10*365*24*time.Hour)
	bounds.Between(&check, "RememberCount", &c.RememberCount, 1000, 1, 10_000)
	return check.Err(ErrConfig)
}

func (c *Config) window() digests.Window {
	return digests.Window{For: c.RememberFor, Count: c.RememberCount}
}
