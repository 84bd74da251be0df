package retry

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// Bound returns the upper bound of the n-th wait: initial, doubled n-1 times, at most longest.
func Bound(initial, longest time.Duration, n uint32) time.Duration {
	for ; n > 1 && initial < longest; n-- {
		initial *= 2
	}
	return min(initial, longest)
}

// Jitter returns a wait between zero and upper. It is derived from domain and parts: equal ones give equal waits, others are
// distributed evenly.
func Jitter(upper time.Duration, domain string, parts ...string) time.Duration {
	drawn := digests.Of(domain, parts...)
	fraction := float64(binary.BigEndian.Uint64(drawn[:])>>11) / float64(1<<53)
	return time.Duration(math.Round(fraction * float64(upper)))
}
