package latency

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
)

// Accuracy is the relative accuracy of quantiles: a quantile is at most 1 % above or below the exact one.
const Accuracy = 0.01

// Longest is the longest latency that is measured. A longer one counts as this one, so a sketch has at most maxBins bins.
const Longest = 30 * 24 * time.Hour

// maxBins is how many bins a sketch has at most: latencies from 1 ms to Longest are in 1085 bins.
const maxBins = 2048

// indexes maps latencies in milliseconds to the indexes of their bins. All rows and all builds must use the same mapping:
// another accuracy needs a new version of the row.
var indexes = func() *mapping.LogarithmicMapping {
	m, err := mapping.NewLogarithmicMapping(Accuracy)
	if err != nil {
		panic(err) // only for an accuracy that is not between 0 and 1
	}
	return m
}()

// bin is a bin of a sketch and how many latencies are in it.
type bin struct {
	index int32
	count uint64
}

var errSketch = errors.New("latency: decode row: its sketch is invalid")

// binsOf returns the bins of a row in order of their indexes.
func binsOf(row *latencyrow.ToolLatencies) ([]bin, error) {
	if len(row.IndexDeltas) != len(row.BinCounts) || len(row.IndexDeltas) > maxBins {
		return nil, errSketch
	}
	if len(row.IndexDeltas) == 0 {
		return nil, checkCounts(row, row.Zeros)
	}
	bins := make([]bin, 0, len(row.IndexDeltas)+1)
	index, total := int64(0), row.Zeros
	for i, delta := range row.IndexDeltas {
		if index += int64(delta); i > 0 && delta <= 0 || index > maxBins || index < -maxBins || row.BinCounts[i] == 0 {
			return nil, errSketch
		}
		if total += row.BinCounts[i]; total > row.Count || total < row.BinCounts[i] {
			return nil, errSketch
		}
		bins = append(bins, bin{int32(index), row.BinCounts[i]})
	}
	return bins, checkCounts(row, total)
}

// checkCounts returns an error if the counts of a row contradict each other.
func checkCounts(row *latencyrow.ToolLatencies, measured uint64) error {
	if measured != row.Count || row.Errors > row.Count {
		return errSketch
	}
	return nil
}

// putBins writes bins to a row.
func putBins(row *latencyrow.ToolLatencies, bins []bin) {
	row.IndexDeltas, row.BinCounts = make([]int32, 0, len(bins)), make([]uint64, 0, len(bins))
	before := int32(0)
	for _, b := range bins {
		row.IndexDeltas = append(row.IndexDeltas, b.index-before)
		row.BinCounts = append(row.BinCounts, b.count)
		before = b.index
	}
}

// addBin adds a count to the bin with an index.
func addBin(bins []bin, index int32, count uint64) []bin {
	at, found := slices.BinarySearchFunc(bins, index, func(b bin, i int32) int { return int(b.index) - int(i) })
	if found {
		bins[at].count += count
		return bins
	}
	return slices.Insert(bins, at, bin{index, count})
}

// sketchOf returns the sketch with the bins and the zeros of an aggregate.
func sketchOf(bins []bin, zeros uint64) *ddsketch.DDSketch {
	positive := store.NewCollapsingLowestDenseStore(maxBins)
	for _, b := range bins {
		positive.AddWithCount(int(b.index), float64(b.count))
	}
	s := ddsketch.NewDDSketch(indexes, positive, store.NewDenseStore())
	if zeros > 0 {
		// The error is for values that cannot be in a sketch, and 0 can.
		_ = s.AddWithCount(0, float64(zeros))
	}
	return s
}

// millis returns a number of milliseconds as a duration.
func millis(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}
