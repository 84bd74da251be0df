package instance_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// slow counts as counting does, but the callback of the first record says that it has begun and then waits.
type slow struct {
	begun chan struct{}
	wait  func(goka.Context)
	seen  atomic.Bool
}

func newSlow(wait func(goka.Context)) *slow { return &slow{begun: make(chan struct{}), wait: wait} }

func (s *slow) graph() *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			if s.seen.CompareAndSwap(false, true) {
				close(s.begun)
				s.wait(ctx)
			}
			n := strconv.Itoa(count(ctx.Value()) + 1)
			ctx.Emit("out", ctx.Key(), n)
			ctx.SetValue(n)
		}),
		goka.Output("out", codec.String()), goka.Persist(codec.String()))
}

// sessionEnd is a wait until Goka's context has ended, which for stock Goka is Sarama's.
func sessionEnd(ctx goka.Context) { <-ctx.Context().Done() }

const burst = 10 // what Goka buffers for a partition

// sendBurst writes a burst of records under one key and returns their partition.
func sendBurst(t testing.TB, brokers []string) int32 {
	t.Helper()
	records := make([]*kgo.Record, burst)
	for i := range records {
		records[i] = keyed("in", "k", "x")
	}
	put(t, brokers, records...)
	return codec.PartitionOf("k", 2)
}

// requireDropped expects that stock Goka commits less than the burst it was handed. When its session has ended, stock Goka chooses
// at random between its end and the next record, so once in 512 runs it drops nothing, and is run again.
func requireDropped(t testing.TB, committed func() int64) {
	t.Helper()
	for range 3 {
		if committed() < burst {
			return
		}
	}
	t.Fatal("stock Goka dropped no record of three bursts")
}

func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i + 1)
	}
	return all
}

// revocation tells when the members of a group must know of a rebalance: a heartbeat of each was answered since.
func revocation(c *kfake.Cluster) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Heartbeat}, Count: -1, Observe: true,
		When: func(r kmsg.Request) bool { return r.GetVersion() == saramaHeartbeat },
	})
}

// saramaHeartbeat is the version of the heartbeats that Sarama's session sends; those of the lease have another.
const saramaHeartbeat = 4

// Records that were handed to Goka before a revocation are finished and committed in the old generation.
func TestRevocationFinishesWhatWasHandedOut(t *testing.T) {
	t.Parallel()
	t.Run("stock drops it", func(t *testing.T) {
		t.Parallel()
		requireDropped(t, func() int64 {
			c, brokers := cluster(t, "in", "out")
			commits := watchCommits(c)
			p := sendBurst(t, brokers)
			s := newSlow(sessionEnd)
			stock(t, brokers, s.graph(), livelyStock)
			receive(t, s.begun)
			stock(t, brokers, counting("g"), livelyStock)
			take(t, brokers, "out", burst)
			return commits.of(1, "in", p)
		})
	})
	t.Run("the drain finishes it", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		commits := watchCommits(c)
		p := sendBurst(t, brokers)
		release := make(chan struct{})
		s := newSlow(func(goka.Context) { <-release })
		first := run(t, instance.Config{Brokers: brokers, Graph: s.graph(), Sarama: lively})
		receive(t, s.begun)
		eventually(t, func() bool { return first.Health().Lag[cut.Partition{Topic: "in", ID: p}] == 0 }, "handed out")

		joins := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, Observe: true})
		second := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
		require.NoError(t, joins.Wait(t.Context(), 2)) // with an empty member id, then with the one it was given
		require.NoError(t, revocation(c).Wait(t.Context(), 2))
		close(release)
		second.ready(t)
		require.Equal(t, int64(burst), commits.of(1, "in", p))

		put(t, brokers, keyed("in", "k", "x"))
		require.Equal(t, numbers(burst+1), values(take(t, brokers, "out", burst+1)), "nothing is done again")
	})
}

// Records that were handed to Goka before a stop are finished and committed before Run returns.
func TestStopFinishesWhatWasHandedOut(t *testing.T) {
	t.Parallel()
	t.Run("stock drops it", func(t *testing.T) {
		t.Parallel()
		requireDropped(t, func() int64 {
			_, brokers := cluster(t, "in", "out")
			p := sendBurst(t, brokers)
			s := newSlow(sessionEnd)
			r := stock(t, brokers, s.graph(), oldest)
			receive(t, s.begun)
			r.stop()
			require.NoError(t, r.wait(t))
			return committedAt(t, kadm.NewClient(dial(t, brokers)), "g", "in", p)
		})
	})
	t.Run("the drain finishes it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		p := sendBurst(t, brokers)
		release := make(chan struct{})
		s := newSlow(func(goka.Context) { <-release })
		inst := run(t, instance.Config{Brokers: brokers, Graph: s.graph()})
		receive(t, s.begun)
		eventually(t, func() bool { return inst.Health().Lag[cut.Partition{Topic: "in", ID: p}] == 0 }, "handed out")
		inst.stop()
		close(release)
		require.NoError(t, inst.wait(t))
		require.Equal(t, int64(burst), committedAt(t, kadm.NewClient(dial(t, brokers)), "g", "in", p))
		require.Equal(t, numbers(burst), values(take(t, brokers, "out", burst)))
	})
	t.Run("with outputs on their way", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "out", "g-table")
		release := hold(c, "out")
		t.Cleanup(release)
		put(t, brokers, keyed("in", "k", "x"), keyed("in", "k", "x"))
		inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
		eventually(t, func() bool { v, err := inst.Get("k"); return err == nil && count(v) == 2 })
		inst.stop()
		require.Never(t, func() bool { return len(inst.done) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
		release()
		require.NoError(t, inst.wait(t))
		require.Equal(t, int64(2), committedAt(t, kadm.NewClient(dial(t, brokers)), "g", "in", 0))
	})
}

// A drain that takes too long commits nothing, and the records are redelivered.
func TestDrainThatTakesTooLongCommitsNothing(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	release := hold(c, "out")
	t.Cleanup(release)
	put(t, brokers, keyed("in", "k", "x"))
	policy := cut.AtLeastOncePolicy()
	policy.Drain = 50 * time.Millisecond
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Policy: policy})
	eventually(t, func() bool { v, err := inst.Get("k"); return err == nil && count(v) == 1 })
	inst.stop()
	require.Never(t, func() bool { return len(inst.done) > 0 }, 500*time.Millisecond, 20*time.Millisecond)
	release()
	require.ErrorIs(t, inst.wait(t), cut.ErrDrain)
	require.LessOrEqual(t, committedAt(t, kadm.NewClient(dial(t, brokers)), "g", "in", 0), int64(0))

	run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
	take(t, brokers, "out", 2) // at least once: the record's output has landed, and lands again
}
