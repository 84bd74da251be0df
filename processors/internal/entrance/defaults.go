package entrance

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors/auth"
)

// Complete completes and checks the configuration of a door but for what New does: the limits, and the form of origins.
func Complete(c *bounds.Check, d *auth.Door) {
	bounds.AtLeast(c, "BodyLimit", &d.BodyLimit, 1<<20, 1)
	bounds.AtLeast(c, "Concurrency", &d.Concurrency, 1024, 1)
	if slices.Contains(d.Origins, "") {
		c.Wrong("Origins", "has an empty one")
	}
	if d.Hosts != nil && len(d.Hosts) == 0 { // would refuse every request
		c.Wrong("Hosts", "is empty, want nil or names")
	}
	for _, host := range d.Hosts {
		if host == "" || host != loopback.Host(host) {
			c.Wrong("Hosts", "has %q, want a name in lower case or an address, without a port", host)
		}
	}
	if d.Clock == nil {
		d.Clock = clock.System()
	}
	if d.Logger == nil {
		d.Logger = zap.NewNop()
	}
}

// defaultLimits are the limits of a door that takes bodies of at most bodyLimit bytes.
func defaultLimits(bodyLimit int64) auth.Limits {
	return auth.Limits{
		Caller:          auth.Share{Open: 256, PerSecond: 500, Burst: 1000},
		Session:         auth.Share{Open: 32, PerSecond: 20, Burst: 100},
		BodyBytes:       max(64<<20, 4*int(bodyLimit)),
		CallerBodyBytes: max(16<<20, 2*int(bodyLimit)),
		BodyRate:        8 << 10,
		BodyIdle:        10 * time.Second,
		Keys:            10_000,
	}
}
