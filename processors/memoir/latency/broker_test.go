package latency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 3 * time.Minute

// start runs a function until the test ends or stop is called.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(t, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// The group is killed again and again while it reads latencies of which some are written twice. A table in another process has
// each of them once, of all tools.
func TestEachLatencyCountsOnceWhenTheGroupIsKilled(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			const n, rounds = 240, 3
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			brokers := testbroker.Start(t)
			c, err := topics.For(testbroker.Agent(), topics.WithLatencies())
			require.NoError(t, err)
			to, err := processors.NewPublisher(brokers)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })
			run := func() (kill func()) {
				graph, err := latency.Graph(c.Agent, latency.Config{})
				require.NoError(t, err)
				p, err := processors.New(brokers, graph, processors.WithTopics(c), processors.WithPartitions(3),
					processors.WithInstance("latencies"), processors.WithGuarantee(guarantee), processors.WithTick(10*time.Millisecond))
				require.NoError(t, err)
				stop := start(t, p.Run)
				require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
				return func() {
					p.Kill()
					stop()
				}
			}
			kill := run()
			table, err := latency.Follow(brokers, c.Agent)
			require.NoError(t, err)
			start(t, table.Run)
			<-table.Ready()

			var sums [5]time.Duration
			var written []processors.Outbound
			for i := range n {
				tool := random.IntN(len(sums))
				ms := random.Int64N(10_000)
				sums[tool] += time.Duration(ms) * time.Millisecond
				out, err := processors.OutboundOf(c.ToolUseLatency, fmt.Sprint("tool-", tool), topics.ToolLatency{LatencyMS: ms}, fmt.Sprint("call-", i))
				require.NoError(t, err)
				written = append(written, out)
				records := []processors.Outbound{out}
				if random.IntN(3) == 0 {
					records = append(records, written[random.IntN(len(written))])
				}
				require.NoError(t, to.Publish(t.Context(), records...))
				if i%(n/rounds) == n/rounds/2 {
					kill()
					kill = run()
				}
			}
			count := func() (calls uint64) {
				all, complete := table.All()
				require.True(t, complete)
				for _, a := range all {
					calls += a.Count
				}
				return calls
			}
			require.Eventually(t, func() bool { return count() >= n }, waitLimit, 5*time.Millisecond)
			kill()
			late, err := latency.Follow(brokers, c.Agent)
			require.NoError(t, err)
			start(t, late.Run)
			<-late.Ready()
			for i, sum := range sums {
				for _, follower := range []*latency.Table{table, late} {
					a, ok := follower.Get(fmt.Sprint("tool-", i))
					require.True(t, ok)
					require.Equal(t, sum, a.Sum)
				}
			}
			require.EqualValues(t, n, count())
		})
	}
}
