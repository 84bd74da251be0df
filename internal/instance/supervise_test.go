package instance_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// Stock Goka's Fail returns while Goka shuts down, and the failed record is committed.
func TestRecordThatFailsDuringShutdownIsNotCommitted(t *testing.T) {
	t.Parallel()
	graph := func(wait func(goka.Context)) (*goka.GroupGraph, chan struct{}) {
		begun := make(chan struct{})
		return goka.DefineGroup("g", goka.Output("out", codec.String()),
			goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
				close(begun)
				wait(ctx)
				ctx.Fail(errBoom)
			})), begun
	}
	p := codec.PartitionOf("k", 2)
	t.Run("stock commits it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "x"))
		g, begun := graph(sessionEnd)
		r := stock(t, brokers, g, oldest)
		receive(t, begun)
		r.stop()
		_ = r.wait(t)
		require.Equal(t, int64(1), committed(t, brokers, "g", "in", p))
	})
	t.Run("ours does not", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "x"))
		release := make(chan struct{})
		g, begun := graph(func(goka.Context) { <-release })
		inst := run(t, instance.Config{Brokers: brokers, Graph: g})
		receive(t, begun)
		inst.stop()
		close(release)
		require.ErrorIs(t, inst.wait(t), errBoom)
		require.LessOrEqual(t, committedAt(t, kadm.NewClient(dial(t, brokers)), "g", "in", p), int64(0))

		run(t, instance.Config{Brokers: brokers, Graph: forwarding("in")})
		require.Equal(t, []string{"x"}, values(take(t, brokers, "out", 1)))
	})
}

// breaking fails at the key "bad" while broken.
func breaking(broken *atomic.Bool) *goka.GroupGraph {
	return goka.DefineGroup("g", goka.Output("out", codec.String()),
		goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
			if ctx.Key() == "bad" && broken.Load() {
				ctx.Fail(errBoom)
			}
			ctx.Emit("out", ctx.Key(), m.(codec.Decoded[string]).Value)
		}))
}

// good is a key of the partition that "bad" is not in.
func good() string {
	key := "good"
	for codec.PartitionOf(key, 2) == codec.PartitionOf("bad", 2) {
		key += "."
	}
	return key
}

// Stock Goka stays down after a failure, in whole or in part. An instance stops as a whole and restarts as a whole.
func TestInstanceStopsAndRestartsAsAWhole(t *testing.T) {
	t.Parallel()
	t.Run("stock stays dead", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		var broken atomic.Bool
		broken.Store(true)
		put(t, brokers, keyed("in", "bad", "x"))
		require.Error(t, stock(t, brokers, breaking(&broken), oldest).wait(t))
		broken.Store(false)
		put(t, brokers, keyed("in", good(), "y"))
		require.Empty(t, takeIn(t, brokers, "out", 1, time.Second))
	})
	t.Run("ours comes back", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		var broken atomic.Bool
		broken.Store(true)
		down := newRestarts(t)
		inst := run(t, instance.Config{Brokers: brokers, Graph: breaking(&broken), Hooks: instance.Hooks{Restart: down.hook}})
		put(t, brokers, keyed("in", good(), "1"))
		admin := kadm.NewClient(dial(t, brokers))
		p := codec.PartitionOf(good(), 2)
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", p) == 1 })
		put(t, brokers, keyed("in", "bad", "x"))
		require.ErrorIs(t, receive(t, down.failed), errBoom)
		require.Equal(t, instance.Degraded, inst.Health().State)
		require.ErrorIs(t, inst.Health().Err, errBoom)
		broken.Store(false)
		put(t, brokers, keyed("in", good(), "2"))
		require.Len(t, takeIn(t, brokers, "out", 2, 200*time.Millisecond), 1, "the other partition has stopped too")
		down.goOn()
		require.ElementsMatch(t, []string{"1", "2", "x"}, values(take(t, brokers, "out", 3)))
		require.Equal(t, instance.Running, inst.Health().State)
		require.Equal(t, 1, inst.Health().Restarts)
	})
}

func TestInstanceGivesUpAtTheLimit(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	var broken atomic.Bool
	broken.Store(true)
	put(t, brokers, keyed("in", "bad", "x"))
	waits := make(chan time.Duration, 10)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: breaking(&broken),
		Restart: instance.Restart{Initial: 5 * time.Millisecond, Max: 20 * time.Millisecond, Limit: 4},
		Hooks:   instance.Hooks{Restart: func(_ error, wait time.Duration) { waits <- wait }},
	})
	err := inst.wait(t)
	require.ErrorIs(t, err, instance.ErrGaveUp)
	require.ErrorIs(t, err, errBoom)
	require.Len(t, waits, 4)
	first, second := <-waits, <-waits
	require.Greater(t, second, first)
	for len(waits) > 0 {
		require.LessOrEqual(t, <-waits, 24*time.Millisecond, "the longest wait and its jitter")
	}
	h := inst.Health()
	require.Equal(t, instance.Stopped, h.State)
	require.ErrorIs(t, h.Err, instance.ErrGaveUp)
	require.ErrorIs(t, inst.Run(context.Background()), instance.ErrRan)
	_, err = inst.Get("bad")
	require.ErrorIs(t, err, instance.ErrNotRunning)
}

// Brokers that are away for longer than the restarts would last are waited for. Those that never were there are not.
func TestOutageOfAllBrokersDoesNotCountAsARestart(t *testing.T) {
	t.Parallel()
	c, brokers := cluster(t, "in", "out")
	_, text, err := net.SplitHostPort(brokers[0])
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	down := newRestarts(t)
	restart := instance.Restart{Initial: time.Millisecond, Max: 5 * time.Millisecond, Limit: 3}
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("in"), Sarama: lively, Restart: restart, Hooks: instance.Hooks{Restart: down.hook},
	})
	inst.ready(t)
	c.Close()
	for away := 0; away < 3*restart.Limit; down.goOn() {
		if err := receive(t, down.failed); errors.Is(err, sarama.ErrOutOfBrokers) {
			away++
		}
		require.LessOrEqual(t, inst.Health().Restarts, restart.Limit)
		require.Equal(t, instance.Degraded, inst.Health().State)
	}
	close(down.again)

	never := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: lively, Restart: restart})
	require.ErrorIs(t, never.wait(t), instance.ErrGaveUp)

	eventually(t, func() bool { // others look for free ports too
		c, err = kfake.NewCluster(kfake.Ports(port), kfake.SeedTopics(2, "in", "out"))
		return err == nil
	})
	t.Cleanup(c.Close)
	put(t, brokers, keyed("in", "k", "1"))
	take(t, brokers, "out", 1)
}

// The restart counter is reset after Restart.Reset without a failure.
func TestFailureCountIsResetAfterAStableRun(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	var broken atomic.Bool
	down := make(chan struct{}, 10)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: breaking(&broken),
		Restart: instance.Restart{Initial: 5 * time.Millisecond, Limit: 1, Reset: time.Millisecond},
		Hooks:   instance.Hooks{Restart: func(error, time.Duration) { broken.Store(false); down <- struct{}{} }},
	})
	for i := range 4 {
		inst.ready(t)
		broken.Store(true)
		put(t, brokers, keyed("in", "bad", "x"))
		receive(t, down)
		take(t, brokers, "out", i+1)
	}
	require.Equal(t, 1, inst.Health().Restarts)
}

// Faults every few seconds never add up to the limit as long as records are committed between them.
func TestFailureCountIsResetByCommittedRecords(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	var broken atomic.Bool
	down := make(chan time.Duration, 10)
	cuts := make(chan int, 1000)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: breaking(&broken),
		Restart: instance.Restart{Initial: 5 * time.Millisecond, Limit: 1},
		Hooks: instance.Hooks{
			Restart: func(_ error, wait time.Duration) { broken.Store(false); down <- wait },
			Cut:     func(m cut.Made) { cuts <- m.Records },
		},
	})
	committed := 0
	for i := range 4 {
		put(t, brokers, keyed("in", good(), "x"))
		for committed < 2*i+1 {
			committed += receive(t, cuts)
		}
		take(t, brokers, "out", 2*i+1)
		broken.Store(true)
		put(t, brokers, keyed("in", "bad", "x"))
		require.LessOrEqual(t, receive(t, down), 6*time.Millisecond, "the first wait and its jitter")
		take(t, brokers, "out", 2*i+2)
	}
	require.Equal(t, 1, inst.Health().Restarts)
}

// Run returns nil if the instance is stopped at any moment, and ErrKilled if it is killed at any moment.
func TestRunEndsWhenItIsStoppedOrKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	put(t, brokers, keyed("in", "k", "x"))
	for i := range 30 {
		inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
		<-time.After(time.Duration(i/2) * time.Millisecond)
		if i%2 == 0 {
			inst.stop()
			require.NoError(t, inst.wait(t))
		} else {
			inst.Kill()
			require.ErrorIs(t, inst.wait(t), cut.ErrKilled)
		}
	}
	run(t, instance.Config{Brokers: brokers, Graph: counting("g")}).ready(t)
}
