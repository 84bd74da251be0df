package whole

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// BenchmarkDelegation compares a task that is sent through the proxy of one instance and runs as a turn of another one with a
// plain HTTP call that gives the same answer. Both instances, with a model that answers at once, and their embedded broker are
// in this process, and so is their CPU time. p50 is that of one caller.
func BenchmarkDelegation(b *testing.B) {
	group, ctx := errgroup.WithContext(b.Context())
	ctx, stop := context.WithCancel(ctx)
	brokers := testbroker.Start(b)
	receiver := instance(ctx, b, group, brokers, testbroker.Agent(), nil, `{"peers":{"enabled":true,"instanceId":"tenant-1",
		"inboundTokens":[{"id":"hq","token":"`+peerToken+`"}]}}`)
	hq := instance(ctx, b, group, brokers, testbroker.Agent(), nil, `{"peers":{"enabled":true,"instanceId":"hq",
		"outbound":[{"id":"tenant","baseUrl":"`+receiver+`","token":"`+peerToken+`"}]}}`)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"taskId":"t","peerInstanceId":"tenant-1","status":"success","result":"done"}`)
	}))
	defer plain.Close()

	var floor time.Duration
	for _, way := range []struct{ name, url string }{
		{"plain-http", plain.URL}, {"delegation", hq + "/api/peer/proxy"},
	} {
		b.Run(way.name, func(b *testing.B) {
			call := func(n int) {
				body := fmt.Sprintf(`{"peerId":"tenant","taskId":"%s-%d-%d","content":"work"}`, way.name, b.N, n)
				r, err := http.Post(way.url, "application/json", bytes.NewBufferString(body))
				require.NoError(b, err)
				answer, err := io.ReadAll(r.Body)
				require.NoError(b, err)
				require.NoError(b, r.Body.Close())
				require.Equal(b, http.StatusOK, r.StatusCode, "%s", answer)
				require.Contains(b, string(answer), "done")
			}
			call(-1)
			took, before := make([]time.Duration, 0, b.N), cpuTime(b)
			for n := 0; b.Loop(); n++ {
				at := time.Now()
				call(n)
				took = append(took, time.Since(at))
			}
			cpu := (cpuTime(b) - before) / time.Duration(len(took))
			slices.Sort(took)
			p50 := took[len(took)/2]
			if way.name == "plain-http" {
				floor = p50
			}
			b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(cpu.Microseconds()), "cpu-µs/op")
			b.ReportMetric(float64(p50)/float64(floor), "p50/plain")
		})
	}
	stop()
	require.NoError(b, group.Wait())
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
