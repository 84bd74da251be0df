package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// When an instance starts or stops, the others rebalance: each drains, rejoins and continues with its local tables. The
// test measures the longest turn meanwhile, on partitions that move and on those that do not.
func TestRebalanceIsShort(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, guarantees...) {
		t.Run(string(guarantee), func(t *testing.T) {
			c := config{agent: testbroker.Agent(), brokers: testbroker.Start(t), guarantee: guarantee}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 4))
			instances := map[string]*instance{}
			start := func(name string) {
				c.instance, c.dir = name, t.TempDir()
				i := spawn(t, c)
				instances[name] = i
				require.NoError(t, i.Await(ctx), name)
			}
			start("a")
			start("b")
			load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{Tools: 2, Concurrency: 8})
			require.NoError(t, err)
			require.True(t, answeredMore(ctx, load, 40))
			// longest is that of turns which are open while do is done, and a little longer.
			longest := func(do func()) time.Duration {
				load.ForgetLatency()
				do()
				require.True(t, answeredMore(ctx, load, 40))
				return load.Progress().Max
			}
			quiet := longest(func() {})
			for range kill.Size(t, "TURNTABLE_RESTARTS", 1) {
				// Goka's sleep after every rebalance. A machine under load may be as slow, but not every time.
				const sleep = 5 * time.Second
				slowest := sleep
				for tries := 0; slowest >= sleep && tries < 4; tries++ {
					comes := longest(func() { start("c") })
					goes := longest(func() { require.NoError(t, instances["c"].Stop()) })
					t.Logf("longest turn: %s; while a third instance comes %s, while it goes %s", quiet, comes, goes)
					slowest = max(comes, goes)
				}
				require.Less(t, slowest, sleep)
			}
			load.Stop()
			require.NoError(t, load.Wait(ctx))
			require.NoError(t, load.Close())
			require.NoError(t, instances["a"].Stop())
			require.NoError(t, instances["b"].Stop())
		})
	}
}
