package latency

import (
	"math"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
)

// Aggregate is how long the calls of a tool took, from when a call was handed out until its result. It is immutable and safe
// for concurrent use. The zero Aggregate has no calls.
type Aggregate struct {
	// Tool is the name of the tool. It is empty in a merged aggregate of several tools.
	Tool string
	// Count is the number of calls, and Errors how many of them ended in an error result or a timeout.
	Count, Errors uint64
	// Sum and Longest are the sum of the latencies and the longest one.
	Sum, Longest time.Duration
	// Last is when the last call was added, zero if there is none.
	Last time.Time

	zeros uint64
	bins  []bin
}

// AggregateOf returns the aggregate in a value of Graph's table, as Processor.Get and a goka.View return it. A nil value is a tool
// without calls. It returns an error if the row cannot be decoded, or the value is of another type.
func AggregateOf(tool string, value any) (Aggregate, error) {
	row, err := rowFormat.Of(value)
	if err != nil {
		return Aggregate{}, err
	}
	return aggregateOf(tool, row)
}

func aggregateOf(tool string, row *latencyrow.ToolLatencies) (Aggregate, error) {
	if row == nil {
		return Aggregate{Tool: tool}, nil
	}
	bins, err := binsOf(row)
	if err != nil {
		return Aggregate{}, err
	}
	return Aggregate{
		Tool: tool, Count: row.Count, Errors: row.Errors, Sum: durationOf(row.SumMs), Longest: durationOf(row.MaxMs),
		Last: time.UnixMilli(row.AddedMs).UTC(), zeros: row.Zeros, bins: bins,
	}, nil
}

// Quantile returns the latency that a share of q of the calls did not exceed, within Accuracy: Quantile(0.5) is the median,
// Quantile(0.99) the 99th percentile. ok is false if there is no call or q is not between 0 and 1.
func (a Aggregate) Quantile(q float64) (d time.Duration, ok bool) {
	if a.Count == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	ms, err := sketchOf(a.bins, a.zeros).GetValueAtQuantile(q)
	if err != nil {
		return 0, false
	}
	return min(millis(ms), a.Longest), true
}

// Mean returns the mean latency, 0 if there is no call.
func (a Aggregate) Mean() time.Duration {
	if a.Count == 0 {
		return 0
	}
	return time.Duration(float64(a.Sum) / float64(a.Count))
}

// Merge returns the aggregate of the calls of both, such as those of all tools. It modifies neither. The result does not depend
// on the order in which aggregates are merged, and is that of one aggregate with all calls.
func (a Aggregate) Merge(other Aggregate) Aggregate {
	merged := Aggregate{
		Count: a.Count + other.Count, Errors: a.Errors + other.Errors, Sum: time.Duration(addLimited(int64(a.Sum), int64(other.Sum))),
		Longest: max(a.Longest, other.Longest), zeros: a.zeros + other.zeros, bins: slices.Clone(a.bins), Last: a.Last,
	}
	if a.Tool == other.Tool {
		merged.Tool = a.Tool
	}
	if other.Last.After(a.Last) {
		merged.Last = other.Last
	}
	for _, b := range other.bins {
		merged.bins = addBin(merged.bins, b.index, b.count)
	}
	return merged
}

// addLimited adds two numbers of at least 0. It returns the largest int64 if the sum is larger.
func addLimited(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// durationOf returns milliseconds as a duration, the longest one if they are more.
func durationOf(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
