package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// nowhere is a publisher that writes nothing.
type nowhere struct{}

func (nowhere) Publish(context.Context, ...processors.Outbound) error { return nil }

// stored returns a console with so many idle sessions, of which one in a hundred has an open turn, and reports its memory.
func stored(b testing.TB, n int) *Console {
	b.Helper()
	catalog, err := topics.For("harbor", topics.WithGates(), topics.WithDeliveries())
	require.NoError(b, err)
	c, err := New(catalog, nowhere{}, Config{})
	require.NoError(b, err)
	before := heap()
	begin := time.Now()
	x := c.follower.index
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for i := range n {
		v := turn.View{SessionID: fmt.Sprintf("user-%07d:session", i), Messages: 4, ChangedAt: topics.Timestamp(at.Add(time.Duration(i*7919%n) * time.Millisecond))}
		if i%100 == 0 {
			v.Turn = &turn.TurnView{TurnID: fmt.Sprint("turn-", i), Step: 1, WaitsFor: turn.WaitModel, DeadlineAt: topics.Timestamp(at.Add(time.Duration(i) * time.Millisecond))}
		}
		x.putTurn(x.at(v.SessionID, turnRow, int32(i%12), int64(i)), &v)
	}
	if t, ok := b.(*testing.B); ok {
		t.ReportMetric(float64(heap()-before)/float64(n), "B/session")
		t.Logf("%d sessions: %d MB, put into the index in %s", n, (heap()-before)>>20, time.Since(begin).Round(time.Millisecond))
	}
	return c
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkPages measures pages of lists with 1,000 and, with TURNTABLE_IDLE_SESSIONS=1000000, so many stored sessions.
func BenchmarkPages(b *testing.B) {
	sizes := []int{1000}
	if n, err := strconv.Atoi(os.Getenv("TURNTABLE_IDLE_SESSIONS")); err == nil {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for _, p := range []string{"/", "/sessions", "/sessions?state=open", "/sessions?prefix=user-0000999"} {
			b.Run(fmt.Sprintf("%d%s", n, p), func(b *testing.B) {
				c := stored(b, n)
				for b.Loop() {
					w := httptest.NewRecorder()
					c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/console"+p, nil))
					if w.Code != http.StatusOK {
						b.Fatal(w.Code)
					}
				}
				runtime.KeepAlive(c)
			})
		}
	}
}
