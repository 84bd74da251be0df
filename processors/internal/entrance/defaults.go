package entrance

import (
	"time"

	"github.com/turntable-streams/turntable/processors/auth"
)

// DefaultLimits are the limits of a door that takes bodies of at most bodyLimit bytes.
func DefaultLimits(bodyLimit int64) auth.Limits {
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
