package store_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/turntable-streams/turntable/internal/store"
)

const open = 1_000_000

// BenchmarkSweep sweeps an index of a million open deadlines of which 0, 10 or 1,000 are due, and scans the same rows
// in the same run, which is what a sweep costs without an index: at its kindest, with the rows in memory and nothing to
// decode. ns/op is the sweep alone, allocations are with arming again.
func BenchmarkSweep(b *testing.B) {
	const far = int64(1) << 50
	rows := make(map[string][]byte, open)
	keys := make([]string, open)
	at := func(i int) int64 { return far + int64(i)*7919%open } // not in the order of keys
	for i := range open {
		keys[i] = fmt.Sprintf("session-%08d", i)
		rows[keys[i]] = binary.BigEndian.AppendUint64(nil, uint64(at(i)))
	}
	before := heap()
	x := store.NewDueIndex()
	for i := range open {
		x.Set(keys[i], at(i))
	}
	perEntry := float64(heap()-before) / open // without the keys' bytes
	scan := scanCost(rows)
	for _, due := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("due=%d", due), func(b *testing.B) {
			var swept time.Duration
			sweeps := 0
			b.ReportAllocs()
			for b.Loop() {
				for j := range due {
					x.Set(keys[(sweeps+j*open/due)%open], 1)
				}
				at := time.Now()
				got := x.PopDue(1, due+1)
				swept += time.Since(at)
				sweeps++
				if len(got) != due {
					b.Fatalf("%d due, want %d", len(got), due)
				}
				for _, e := range got {
					x.Set(e.Key, far)
				}
			}
			sweep := float64(swept.Nanoseconds()) / float64(sweeps)
			b.ReportMetric(sweep, "ns/op") // without arming again
			if due > 0 {
				b.ReportMetric(sweep/float64(due), "ns/due")
			}
			b.ReportMetric(perEntry, "B/entry")
			b.ReportMetric(float64(scan.Nanoseconds()), "ns/scan")
			b.ReportMetric(float64(scan.Nanoseconds())/sweep, "scan/sweep")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// scanCost is what looking at every row's deadline takes, the fastest of three times.
func scanCost(rows map[string][]byte) time.Duration {
	best := time.Hour
	for range 3 {
		at, found := time.Now(), 0
		for _, row := range rows {
			if binary.BigEndian.Uint64(row) <= 1 {
				found++
			}
		}
		if took := time.Since(at); found == 0 && took < best {
			best = took
		}
	}
	return best
}

func BenchmarkSet(b *testing.B) {
	x := store.NewDueIndex()
	keys := make([]string, open)
	for i := range keys {
		keys[i] = fmt.Sprintf("session-%08d", i)
		x.Set(keys[i], int64(i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Set(keys[i*7919%open], int64(open+i))
	}
}
