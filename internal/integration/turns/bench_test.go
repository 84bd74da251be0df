package turns

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// BenchmarkTurn plays whole turns with two tools against the pipeline: one at a time, which shows the latency of a turn,
// and 64 at a time, which shows the rate. CPU is that of the whole process: pipeline, player and, where it is embedded, the
// broker.
func BenchmarkTurn(b *testing.B) {
	for _, guarantee := range guarantees {
		for _, concurrency := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", guarantee, concurrency), func(b *testing.B) {
				c := config{agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(b), guarantee: guarantee, partitions: 1}
				p, err := c.processor(zap.NewNop())
				require.NoError(b, err)
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				defer func() {
					cancel()
					require.NoError(b, <-ended)
				}()
				waitRunning(b, p)

				play := func(turns int, prefix string) wiretest.LoadProgress {
					load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{
						Turns: turns, Tools: 2, Concurrency: concurrency, Prefix: prefix,
					})
					require.NoError(b, err)
					require.NoError(b, load.Wait(ctx))
					progress := load.Progress()
					require.NoError(b, load.Close())
					return progress
				}
				play(2*concurrency, "warm")
				runtime.GC()
				began, used := time.Now(), processorTime()
				b.ResetTimer()
				progress := play(b.N, "bench")
				b.StopTimer()
				took := time.Since(began)
				b.ReportMetric(float64(b.N)/took.Seconds(), "turns/s")
				b.ReportMetric((processorTime()-used).Seconds()/float64(b.N)*1000, "CPU-s/1000turns")
				b.ReportMetric(float64(progress.P50.Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(progress.P99.Microseconds())/1000, "p99-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkOrderedOutputs is what turn.Config.OrderedOutputs costs a turn with one step of tools, one turn at a time: the median
// latency without it and with it, measured in turns, and the ratio of the two.
func BenchmarkOrderedOutputs(b *testing.B) {
	const rounds = 3
	for _, guarantee := range guarantees {
		b.Run(string(guarantee), func(b *testing.B) {
			brokers := testbroker.Start(b)
			var agents [2]config // without and with
			for i := range agents {
				agents[i] = config{
					agent: testbroker.Agent(), instance: "i1", brokers: brokers, guarantee: guarantee, partitions: 1,
					child: settings{Ordered: i == 1},
				}
				start(b, agents[i])
			}
			var ms [2]float64
			for round := range rounds + 1 { // the first one warms up
				for i, c := range agents {
					load, err := wiretest.StartLoad(b.Context(), brokers, c.agent, wiretest.LoadOptions{
						Turns: b.N + 1, Tools: 2, Concurrency: 1, Prefix: fmt.Sprint("bench", b.N, "-", round),
					})
					require.NoError(b, err)
					require.NoError(b, load.Wait(b.Context()))
					if round > 0 {
						ms[i] += float64(load.Progress().P50.Microseconds()) / 1000 / rounds
					}
					require.NoError(b, load.Close())
				}
			}
			b.ReportMetric(ms[0], "without-ms")
			b.ReportMetric(ms[1], "with-ms")
			b.ReportMetric(ms[1]/ms[0], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// processorTime is the CPU time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
