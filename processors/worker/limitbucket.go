package worker

import (
	"math"
	"time"
)

// limitBucket is what calls share that have a need of the same name.
type limitBucket struct {
	calls   int // that wait or run
	running int
	paused  time.Time // no call begins before

	rate, burst float64 // the rate is 0 if units are not counted
	units       float64 // at the time filled; negative if calls took more than there were
	filled      time.Time
}

func (s *admission) bucket(name string, now time.Time) *limitBucket {
	if b := s.buckets[name]; b != nil {
		return b
	}
	if len(s.buckets) >= s.sweepAt {
		for name, b := range s.buckets {
			if b.unused(now) {
				delete(s.buckets, name)
			}
		}
		s.sweepAt = max(2*len(s.buckets), minSweep)
	}
	b := &limitBucket{}
	s.buckets[name] = b
	return b
}

// unused reports whether the bucket is like a new one.
func (b *limitBucket) unused(now time.Time) bool {
	b.fill(now)
	return b.calls == 0 && !b.paused.After(now) && (b.rate == 0 || b.units >= b.burst)
}

// configure sets the rate of the bucket to that of the last call.
func (b *limitBucket) configure(n need, now time.Time) {
	if n.Rate == b.rate && n.Burst == b.burst || n.Rate == 0 {
		return
	}
	b.fill(now)
	b.units += n.Burst - b.burst
	b.rate, b.burst, b.filled = n.Rate, n.Burst, now
}

func (b *limitBucket) fill(now time.Time) {
	if b.rate > 0 && now.After(b.filled) {
		b.units = min(b.burst, b.units+b.rate*now.Sub(b.filled).Seconds())
		b.filled = now
	}
}

func (b *limitBucket) take(units float64, now time.Time) {
	if b.rate > 0 {
		b.fill(now)
		b.units -= units
	}
}

func (b *limitBucket) full(n need) bool { return n.Concurrency > 0 && b.running >= n.Concurrency }

// unitRounding is how much of a unit may be missing.
const unitRounding = 1e-6

func (b *limitBucket) admits(n need, now time.Time) bool {
	if b.full(n) || b.paused.After(now) {
		return false
	}
	b.fill(now)
	return b.rate == 0 || b.units >= 1-unitRounding
}

// ready returns when the bucket is not paused and has a unit.
func (b *limitBucket) ready(now time.Time) time.Time {
	at := now
	b.fill(now)
	if b.rate > 0 && b.units < 1-unitRounding {
		missing := min((1-b.units)/b.rate, float64(longestPause/time.Second))
		at = now.Add(time.Duration(math.Ceil(missing*1e6)) * time.Microsecond)
	}
	if b.paused.After(at) {
		at = b.paused
	}
	return at
}

// longestPause is how far ahead Next looks.
const longestPause = 24 * time.Hour

// Pause lets no call of the bucket begin before until. An earlier end of the pause has no effect.
func (s *admission) Pause(name string, until, now time.Time) {
	if !until.After(now) {
		return
	}
	if b := s.bucket(name, now); until.After(b.paused) {
		b.paused = until
	}
}

// Take takes more units of a bucket than the cost of its calls, or returns some if units is negative. It has no effect on a
// limitBucket without a rate.
func (s *admission) Take(name string, units float64, now time.Time) {
	if b := s.buckets[name]; b != nil {
		b.take(units, now)
		b.units = min(b.units, b.burst)
	}
}
