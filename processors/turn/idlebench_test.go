package turn

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/store"
)

// BenchmarkIdleSessions measures sessions that wait for their end by inactivity: the memory of each, and a tick in which none or
// 1,000 of them are due, whose rows are decoded, ended and encoded. Rows are on disk, so only the deadlines need memory.
// TURNTABLE_IDLE_SESSIONS is how many sessions there are (default 100,000).
func BenchmarkIdleSessions(b *testing.B) {
	count := 100_000
	if text := os.Getenv("TURNTABLE_IDLE_SESSIONS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	p := talked(b)
	at, ok := rows.Deadline(p.row)
	require.True(b, ok)
	before := heapSize()
	x := store.NewDueIndex()
	for i := range count {
		x.Set(fmt.Sprintf("session-%08d", i), at+1+int64(i*7919%count))
	}
	each := float64(heapSize()-before) / float64(count)
	for _, due := range []int{0, 1000} {
		b.Run(fmt.Sprintf("due=%d", due), func(b *testing.B) {
			p.now = time.UnixMilli(at).UTC()
			binding := p.newBinding()
			var took time.Duration
			ticks := 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range due {
					x.Set(fmt.Sprintf("session-%08d", i), at)
				}
				from := time.Now()
				entries := x.PopDue(at, due+1)
				for range entries {
					out, err := binding.decide(p.table(), deadlineCame{Session: p.key}, p.now)
					if err != nil || len(out.Effects) != 3 {
						b.Fatalf("the session did not end: %d effects, error: %v", len(out.Effects), err)
					}
				}
				took += time.Since(from)
				ticks++
				if len(entries) != due {
					b.Fatalf("%d sessions are due, want %d", len(entries), due)
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(ticks), "ns/op") // without arming again
			if due > 0 {
				b.ReportMetric(float64(took.Nanoseconds())/float64(ticks*due), "ns/end")
			}
			b.ReportMetric(each, "B/session")
			b.ReportMetric(float64(len(p.row)), "row-B")
		})
	}
	runtime.KeepAlive(x)
}

func heapSize() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
