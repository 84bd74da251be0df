package cut

import "time"

// Instant is a reading of both clocks of the machine. The monotonic clock stops while the machine is suspended, and the
// wall clock can be set. The time between two readings is therefore that of the clock that advanced further.
type Instant struct {
	Monotonic time.Duration // since a moment that is the same for all readings of a process
	Wall      time.Time     // without a monotonic reading
}

var processStart = time.Now()

// Now reads the clocks.
func Now() Instant {
	t := time.Now()
	return Instant{Monotonic: t.Sub(processStart), Wall: t.Round(0)}
}

// Since returns the time that has passed since an earlier instant.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Monotonic-earlier.Monotonic, i.Wall.Sub(earlier.Wall))
}
