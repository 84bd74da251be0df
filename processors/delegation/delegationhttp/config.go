package delegationhttp

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run.
var ErrConfig = errors.New("delegationhttp: invalid configuration")

// Config configures NewIndex and New. Fields that are zero have their defaults. NewIndex uses DelegationLimit, Lookback, Clock and Logger.
// New uses the others, and has the Clock and the Logger of its index by default.
type Config struct {
	// Door is the configuration of the door, which reads no bodies. Callers need the right auth.Read. A delegation of a session that
	// the caller may not use is answered as one that does not exist.
	auth.Door
	// DelegationLimit is how many delegations an Index has (default 200,000, at least 1). Each takes some hundred bytes. Over the
	// limit, those without a record for the longest time are forgotten: requests for them get 404.
	DelegationLimit int
	// Lookback is for how long an Index has a delegation after its last record (default 24 hours, at least 1 s). It must be longer
	// than delegations take, and not longer than the retention of the topic.
	Lookback time.Duration
}

func (c *Config) complete(check *bounds.Check) {
	entrance.Complete(check, &c.Door)
	bounds.AtLeast(check, "DelegationLimit", &c.DelegationLimit, 200_000, 1)
	bounds.AtLeast(check, "Lookback", &c.Lookback, 24*time.Hour, time.Second)
}
