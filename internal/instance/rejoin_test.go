package instance_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// standstill keeps both partitions of in busy while a second member joins, and returns the longest time without an
// output in one of them.
func standstill(t *testing.T, brokers []string, join func()) (longest time.Duration) {
	t.Helper()
	c := dial(t, brokers)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
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

// Stock Goka sleeps for five seconds after every rebalance, and stops every partition of the group meanwhile, since the
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
		const bound = 3 * time.Second
		stood := time.Duration(math.MaxInt64)
		for range 5 { // who sleeps does so every time; a machine that is busy is not always
			_, brokers := cluster(t, "in", "out")
			run(t, instance.Config{Brokers: brokers, Graph: forwarding("in")})
			stood = standstill(t, brokers, func() {
				run(t, instance.Config{Brokers: brokers, Graph: forwarding("in")}).ready(t)
			})
			t.Logf("ours stands still for %s", stood)
			if stood < bound {
				break
			}
		}
		require.Less(t, stood, bound)
	})
}

// A table in memory is not read again by the member that keeps its partition: it continues where it was, and a rebalance
// takes no longer for a large table. What it had is still there, and so is what another member writes.
func TestRebalanceDoesNotReadTheTableAgain(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		c, brokers := cluster(t, "in", "out", "g-table")
		a, b := sibling("k", 0), sibling("k", 1)
		const before = 50 // more than the probe for the table's end looks at
		for i := range before {
			other := strconv.Itoa(i)
			put(t, brokers, keyed("in", a, "x"), keyed("in", b, "x"),
				keyed("in", sibling(other, 0), "x"), keyed("in", sibling(other, 1), "x"))
		}
		first := run(t, instance.Config{
			Brokers: brokers, Graph: counting("g"), Sarama: lively, InstanceID: "first", Guarantee: guarantee,
		})
		take(t, brokers, "out", 4*before)
		eventually(t, func() bool {
			return committed(t, brokers, "g", "in", 0) == 2*before && committed(t, brokers, "g", "in", 1) == 2*before
		})
		from := fetched(c, "g-table")
		second := run(t, instance.Config{
			Brokers: brokers, Graph: counting("g"), Sarama: lively, InstanceID: "second", Guarantee: guarantee,
		})
		second.ready(t)
		counted := func(want string) {
			put(t, brokers, keyed("in", a, "x"), keyed("in", b, "x"))
			eventually(t, func() bool {
				all := values(takeIn(t, brokers, "out", 1<<20, 200*time.Millisecond))
				seen := len(all)
				all = slices.DeleteFunc(all, func(v string) bool { return v != want })
				return seen >= 4*before && len(all) == 2
			}, want)
		}
		counted("51")
		second.stop()
		require.NoError(t, second.wait(t))
		counted("52") // with the row of the one that left
		require.Zero(t, first.Health().Restarts)
		at := from()
		require.Len(t, at, 1, "no member reads the partition that stayed from its start: %v", at)
	})
}

// fetched watches the fetches of a topic from its first record, by partition.
func fetched(c *kfake.Cluster, topic string) func() map[int32]int {
	var mu sync.Mutex
	fromStart := map[int32]int{}
	c.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		for _, t := range r.(*kmsg.FetchRequest).Topics {
			if info := c.TopicIDInfo(t.TopicID); t.Topic != topic && (info == nil || info.Topic != topic) {
				continue
			}
			for _, p := range t.Partitions {
				if p.FetchOffset == 0 {
					fromStart[p.Partition]++
				}
			}
		}
		return nil, nil, false
	})
	return func() map[int32]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(fromStart)
	}
}

// A process that is killed stays a member until its session times out, and the next one waits for it.
func TestMemberThatWaitsForAKilledOneSaysSo(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out"), kfake.GroupMinSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	brokers := c.ListenAddrs()
	brief := func() *sarama.Config {
		conf := lively()
		conf.Consumer.Group.Session.Timeout = 2 * time.Second
		return conf
	}
	c.ControlKey(int16(kmsg.LeaveGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		return r.ResponseKind(), nil, true // it does not leave, as a process that is killed
	})
	dead := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: brief})
	dead.ready(t)
	dead.Kill()
	require.ErrorIs(t, dead.wait(t), cut.ErrKilled)
	core, logged := observer.New(zap.WarnLevel)
	waiting := func() bool { return logged.FilterMessageSnippet("with WithInstance").Len() > 0 }
	heir := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: brief, Logger: zap.New(core)})
	eventually(t, func() bool { return waiting() || heir.recovered() })
	require.True(t, waiting(), "it has joined before the session of the other timed out")
}
