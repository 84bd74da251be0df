package latency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// measured returns the row after a record with this latency.
func measured(t machinetest.TB, row *latencyrow.ToolLatencies, id string, ms int64, status string, now time.Time) *latencyrow.ToolLatencies {
	w := &machinetest.World[*latencyrow.ToolLatencies, *measurement]{TB: t, Table: rowFormat, Now: now}
	w.Apply = func(row *latencyrow.ToolLatencies, r *measurement) (outcome, error) {
		return apply(row, "berth_lookup", r, w.Now, defaults()), nil
	}
	if row != nil {
		w.Set(row)
	}
	require.Empty(t, w.Handle(newMeasurement(id, topics.ToolLatency{LatencyMS: ms, Status: status})))
	return w.Read()
}

func newMeasurement(id string, v topics.ToolLatency) *measurement {
	return &measurement{&machine.Record{ID: id, Value: []byte("{}")}, v}
}

func stored(t require.TestingT, row *latencyrow.ToolLatencies) *latencyrow.ToolLatencies {
	raw, err := rowFormat.Marshal(row)
	require.NoError(t, err)
	d := rowFormat.Codec().Unmarshal(raw)
	require.NoError(t, d.Err)
	return d.Value
}

func aggregateIn(t require.TestingT, row *latencyrow.ToolLatencies) Aggregate {
	a, err := aggregateOf("berth_lookup", row)
	require.NoError(t, err)
	return a
}

func TestCallsOfAToolAreAggregated(t *testing.T) {
	var row *latencyrow.ToolLatencies
	for i, ms := range []int64{100, 0, 300, 200} {
		row = measured(t, row, strconv.Itoa(i), ms, "", noon)
	}
	row = measured(t, row, "late", 30_000, "error", noon.Add(time.Minute))
	a := aggregateIn(t, row)
	require.EqualValues(t, 5, a.Count)
	require.EqualValues(t, 1, a.Errors)
	require.Equal(t, 30_600*time.Millisecond, a.Sum)
	require.Equal(t, 6120*time.Millisecond, a.Mean())
	require.Equal(t, 30*time.Second, a.Longest)
	require.Equal(t, noon.Add(time.Minute), a.Last)
	median, ok := a.Quantile(0.5)
	require.True(t, ok)
	require.InEpsilon(t, 200*time.Millisecond, median, Accuracy)
	least, _ := a.Quantile(0)
	require.Zero(t, least)
	most, _ := a.Quantile(1)
	require.InEpsilon(t, 30*time.Second, most, Accuracy)
	require.LessOrEqual(t, most, a.Longest)
	for _, q := range []float64{-0.1, 1.1, math.NaN()} {
		_, ok = a.Quantile(q)
		require.False(t, ok)
	}
	_, ok = Aggregate{}.Quantile(0.5)
	require.False(t, ok)
	require.Zero(t, Aggregate{}.Mean())
}

func TestRepeatedLatencyIsAddedOnce(t *testing.T) {
	row := measured(t, nil, "a", 5, "", noon)
	out := apply(row, "berth_lookup", newMeasurement("a", topics.ToolLatency{LatencyMS: 5}), noon.Add(time.Hour), defaults())
	require.False(t, out.Changed)
	require.EqualValues(t, 2, measured(t, row, "b", 5, "", noon).Count)
}

func TestInvalidLatenciesAreDeadLettered(t *testing.T) {
	other := "other"
	for reason, r := range map[string]topics.ToolLatency{
		reasonNegative: {LatencyMS: -1},
		reasonTool:     {ToolName: &other},
	} {
		require.Equal(t, reason, machinetest.Reason(t, apply(nil, "t", newMeasurement("a", r), noon, defaults()).Effects))
	}
	for _, name := range []string{"", strings.Repeat("x", maxName+1)} {
		require.Equal(t, reasonLongName, machinetest.Reason(t, apply(nil, name, newMeasurement("a", topics.ToolLatency{}), noon, defaults()).Effects))
	}
}

func TestAbsurdLatencyCountsAsTheLongest(t *testing.T) {
	row := measured(t, nil, "a", math.MaxInt64, "", noon)
	require.Equal(t, Longest, aggregateIn(t, row).Longest)
	p50, _ := aggregateIn(t, row).Quantile(0.5)
	require.InEpsilon(t, Longest, p50, Accuracy)
}

// A row with every latency that there can be is the largest row.
func TestRowIsBounded(t *testing.T) {
	config := defaults()
	row := &latencyrow.ToolLatencies{Version: latencyrow.Version, DeadlineMs: math.MaxInt64 / 2}
	calls := 0
	for ms := 0.6; ms < 1.1*float64(Longest.Milliseconds()); ms *= 1.01 {
		require.NoError(t, measureTools(row, int64(math.Ceil(ms))))
		calls++
	}
	for i := range row.BinCounts {
		row.BinCounts[i] += 1 << 40
		row.Count += 1 << 40
	}
	for i := range 2 * config.RememberCount {
		row.Seen = config.window().Add(row.Seen, strconv.Itoa(i), noon)
	}
	row = stored(t, row)
	raw, err := rowFormat.Marshal(row)
	require.NoError(t, err)
	require.Less(t, len(row.BinCounts), 1086)
	require.Less(t, len(raw), 24<<10)
	t.Logf("%d calls, %d bins, %d bytes", calls, len(row.BinCounts), len(raw))
}

func TestToolWithoutCallsExpires(t *testing.T) {
	config := defaults()
	row := measured(t, nil, "a", 5, "", noon)
	deadline := func() time.Time {
		raw, err := rowFormat.Marshal(row)
		require.NoError(t, err)
		ms, ok := rows.Deadline(raw)
		require.True(t, ok)
		return time.UnixMilli(ms)
	}
	later := noon.Add(12 * time.Hour)
	row = measured(t, row, "b", 5, "", later)
	require.Equal(t, noon.Add(24*time.Hour+time.Second), deadline().UTC())

	at := deadline()
	row = stored(t, apply(row, "berth_lookup", nil, at, config).Row)
	require.Len(t, row.Seen, 12, "the ID of the first call is forgotten")
	require.Equal(t, later.Add(24*time.Hour+time.Second), deadline().UTC())

	at = deadline()
	row = stored(t, apply(row, "berth_lookup", nil, at, config).Row)
	require.Empty(t, row.Seen)
	require.Equal(t, later.Add(30*24*time.Hour), deadline().UTC())
	require.EqualValues(t, 2, row.Count)

	out := apply(row, "berth_lookup", nil, deadline(), config)
	require.True(t, out.Changed)
	require.Nil(t, out.Row)
	require.Equal(t, outcome{}, apply(nil, "berth_lookup", nil, noon, config))
}

// A clock that was ahead, or that of another instance, leaves an ID that is not yet old when the last one is.
func TestClockThatWasAheadMakesNoDeadlineOfEachTick(t *testing.T) {
	row := measured(t, nil, "a", 5, "", noon)
	row = measured(t, row, "b", 5, "", noon.Add(24*time.Hour-time.Minute))
	row = measured(t, row, "c", 5, "", noon.Add(time.Minute))
	deadlines := 0
	for ; row != nil; deadlines++ {
		require.Less(t, deadlines, 6)
		row = apply(row, "berth_lookup", nil, time.UnixMilli(row.DeadlineMs), defaults()).Row
	}
}

func TestRowsWithInvalidSketchesAreRejected(t *testing.T) {
	good := measured(t, measured(t, nil, "a", 5, "", noon), "b", 700, "", noon)
	for name, breakIt := range map[string]func(*latencyrow.ToolLatencies){
		"another length":  func(r *latencyrow.ToolLatencies) { r.BinCounts = r.BinCounts[:1] },
		"another order":   func(r *latencyrow.ToolLatencies) { r.IndexDeltas[1] = -1 },
		"empty bin":       func(r *latencyrow.ToolLatencies) { r.BinCounts[1] = 0 },
		"too far":         func(r *latencyrow.ToolLatencies) { r.IndexDeltas[1] = math.MaxInt32 },
		"another count":   func(r *latencyrow.ToolLatencies) { r.Count = 7 },
		"counts overflow": func(r *latencyrow.ToolLatencies) { r.BinCounts[0], r.BinCounts[1] = math.MaxUint64, 3 },
		"more errors":     func(r *latencyrow.ToolLatencies) { r.Errors = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			row := proto.CloneOf(good)
			breakIt(row)
			raw, err := rowFormat.Marshal(row)
			require.NoError(t, err)
			require.ErrorIs(t, rowFormat.Codec().Unmarshal(raw).Err, errSketch)
			_, err = aggregateOf("x", row)
			require.ErrorIs(t, err, errSketch)
		})
	}
	newer := proto.CloneOf(good)
	newer.Version = latencyrow.Version + 1
	raw, err := rowFormat.Marshal(newer)
	require.NoError(t, err)
	require.ErrorIs(t, rowFormat.Codec().Unmarshal(raw).Err, rows.ErrVersion)
	require.ErrorIs(t, rowFormat.Codec().Unmarshal(raw).Err, processors.ErrKeepRecord)
}

// Latencies of any distribution: the quantiles of the aggregate are within Accuracy of the exact ones, and the aggregates of
// parts merge to the aggregate of the whole, in any order. Records are redelivered in between.
func TestQuantilesAndMergesAreAccurate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "calls")
		spread := rapid.Float64Range(0, 20).Draw(t, "spread")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		parts := make([]*latencyrow.ToolLatencies, rapid.IntRange(1, 4).Draw(t, "parts"))
		var whole *latencyrow.ToolLatencies
		var exact []float64
		for i := range n {
			ms := int64(math.Exp(spread * random.Float64()))
			if random.IntN(10) == 0 {
				ms = 0
			}
			exact = append(exact, float64(ms))
			id, part := strconv.Itoa(i), random.IntN(len(parts))
			whole, parts[part] = measured(t, whole, id, ms, "", noon), measured(t, parts[part], id, ms, "", noon)
			if random.IntN(3) == 0 { // a redelivery of an earlier record
				id = strconv.Itoa(random.IntN(i + 1))
				whole = measured(t, whole, id, 12345, "", noon)
			}
		}
		slices.Sort(exact)
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		merged := Aggregate{Tool: "berth_lookup"}
		for _, p := range parts {
			merged = merged.Merge(aggregateIn(t, p))
		}
		require.Equal(t, aggregateIn(t, whole), merged)
		for _, q := range []float64{0, 0.5, 0.95, 0.99, 1, rapid.Float64Range(0, 1).Draw(t, "q")} {
			got, ok := merged.Quantile(q)
			require.True(t, ok)
			want := exact[int(q*float64(n-1))]
			require.InDelta(t, want, float64(got)/float64(time.Millisecond), want*Accuracy*1.0001+1e-6, "q=%v", q)
		}
	})
}

func TestMergedAggregateOfSeveralToolsHasNoName(t *testing.T) {
	a, b := Aggregate{Tool: "a", Count: 1, Sum: math.MaxInt64}, Aggregate{Tool: "b", Count: 2, Sum: 1, Longest: 1}
	merged := a.Merge(b)
	require.Empty(t, merged.Tool)
	require.EqualValues(t, 3, merged.Count)
	require.EqualValues(t, math.MaxInt64, merged.Sum)
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("calls=%d", n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			var row *latencyrow.ToolLatencies
			add := func(i int) {
				r := newMeasurement(strconv.Itoa(i), topics.ToolLatency{LatencyMS: int64(math.Exp(12 * random.Float64()))})
				row = apply(row, "t", r, noon, defaults()).Row
			}
			for i := range n {
				add(i)
			}
			raw, err := rowFormat.Marshal(row)
			require.NoError(b, err)
			b.ReportAllocs()
			i := n
			for b.Loop() {
				d := rowFormat.Codec().Unmarshal(raw)
				row = d.Value
				add(i)
				if _, err := rowFormat.Marshal(row); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(len(raw)), "B/row")
		})
	}
}

func defaults() *Config {
	var c Config
	_ = c.complete()
	return &c
}
