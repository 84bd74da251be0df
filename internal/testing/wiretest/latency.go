package wiretest

import (
	"math"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets that are 4 % apart, from 10 microseconds to an hour. Its size is fixed.
type histogram struct {
	buckets [512]atomic.Int64
}

const (
	shortest = 10 * time.Microsecond
	growth   = 1.04
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > shortest {
		i = int(math.Log(float64(d)/float64(shortest)) / math.Log(growth))
	}
	h.buckets[min(i, len(h.buckets)-1)].Add(1)
}

// quantile returns the upper bound of the bucket that contains the quantile; 0 if the histogram is empty.
func (h *histogram) quantile(q float64) time.Duration {
	var total int64
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	rank, sum := int64(math.Ceil(q*float64(total))), int64(0)
	for i := range h.buckets {
		sum += h.buckets[i].Load()
		if total > 0 && sum >= rank {
			return time.Duration(float64(shortest) * math.Pow(growth, float64(i+1)))
		}
	}
	return 0
}

func (h *histogram) reset() {
	for i := range h.buckets {
		h.buckets[i].Store(0)
	}
}
