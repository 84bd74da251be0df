package unit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/unit"
)

// standstill keeps both partitions of in busy while a second member joins, and returns the longest time without an
// output in one of them.
func standstill(t *testing.T, brokers []string, join func()) (longest time.Duration) {
	t.Helper()
	c := dial(t, brokers)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fed := 0
	feed := func() error {
		fed += 2
		return c.ProduceSync(ctx, keyed("in", sibling("k", 0), "x"), keyed("in", sibling("k", 1), "x")).FirstErr()
	}
	require.NoError(t, feed())
	take(t, brokers, "out", 2)

	joined, feeding := make(chan struct{}), make(chan error, 1)
	go func() {
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for {
			if err := feed(); err != nil {
				feeding <- err
				return
			}
			select {
			case <-pace.C:
			case <-joined:
				feeding <- feed()
				return
			}
		}
	}()
	join()
	close(joined)
	require.NoError(t, receive(t, feeding))

	last := map[int32]time.Time{}
	for _, r := range take(t, brokers, "out", fed) {
		if at, ok := last[r.Partition]; ok {
			longest = max(longest, r.Timestamp.Sub(at))
		}
		last[r.Partition] = r.Timestamp
	}
	return longest
}

// DESIGN 4: after every rebalance Goka sleeps for five seconds, and with it every partition of the group, since the
// coordinator waits for all members.
func TestRebalanceDoesNotSleep(t *testing.T) {
	t.Parallel()
	t.Run("stock sleeps", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		stock(t, brokers, forwarding("in"), oldest)
		stood := standstill(t, brokers, func() {
			second := stock(t, brokers, forwarding("in"), oldest)
			eventually(t, second.recovered)
		})
		t.Logf("stock stands still for %s", stood)
		require.Greater(t, stood, 5*time.Second)
	})
	t.Run("ours does not", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		run(t, unit.Config{Brokers: brokers, Graph: forwarding("in")})
		stood := standstill(t, brokers, func() {
			run(t, unit.Config{Brokers: brokers, Graph: forwarding("in")}).ready(t)
		})
		t.Logf("ours stands still for %s", stood)
		require.Less(t, stood, 3*time.Second)
	})
}
