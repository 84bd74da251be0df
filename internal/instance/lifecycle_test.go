package instance_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// Sarama closes a claim whose offset the broker no longer has, and continues the group's session.
func TestClaimThatSaramaClosesIsRestarted(t *testing.T) {
	t.Parallel()
	c, brokers := cluster(t, "in", "out")
	inst := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: lively})
	put(t, brokers, keyed("in", "k", "1"))
	take(t, brokers, "out", 1)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "in", Err: kerr.OffsetOutOfRange})
	require.NoError(t, fault.Wait(t.Context(), 1))
	put(t, brokers, keyed("in", "k", "2"), keyed("in", good(), "3"))
	take(t, brokers, "out", 3)
	require.Zero(t, inst.Health().Restarts, "the session ends as in a rebalance")
}

// A transaction that timed out, because the process or the broker was suspended, is an ordinary failure: no other process
// has joined with the instance id.
func TestTimedOutTransactionIsRetried(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	put(t, brokers, keyed("in", "k", "x"))
	var seen atomic.Int64
	g := goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			n := strconv.Itoa(count(ctx.Value()) + 1)
			ctx.Emit("out", ctx.Key(), n)
			ctx.SetValue(n)
			if seen.Add(1) == 1 {
				<-time.After(2500 * time.Millisecond)
			}
		}),
		goka.Output("out", codec.String()), goka.Persist(codec.String()))
	var restarts atomic.Int64
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: g, Sarama: lively, InstanceID: "i1", Guarantee: instance.ExactlyOnce,
		TransactionTimeout: time.Second,
		Hooks:              instance.Hooks{Restart: func(error, time.Duration) { restarts.Add(1) }},
	})
	require.Equal(t, []string{"1"}, values(take(t, brokers, "out", 1)))
	require.NotZero(t, restarts.Load())
	inst.stop()
	require.NoError(t, inst.wait(t))
}

// An instance that is down for another reason when a newer process takes its instance id does not restart: it would
// fence the newer one.
func TestInstanceReplacedWhileDownDoesNotRestart(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		_, brokers := cluster(t, "in", "out")
		down := newRestarts(t)
		start := func(broken bool) *running {
			var b atomic.Bool
			b.Store(broken)
			return run(t, instance.Config{
				Brokers: brokers, Graph: breaking(&b), Sarama: lively, InstanceID: "i1", Guarantee: guarantee,
				Hooks: instance.Hooks{Restart: down.hook},
			})
		}
		put(t, brokers, keyed("in", "bad", "x"))
		older := start(true)
		require.ErrorIs(t, receive(t, down.failed), errBoom)
		newer := start(false)
		take(t, brokers, "out", 1)
		down.goOn()
		require.ErrorIs(t, older.wait(t), cut.ErrFenced)
		put(t, brokers, keyed("in", "bad", "y"))
		take(t, brokers, "out", 2)
		require.Zero(t, newer.Health().Restarts)
		require.Empty(t, down.failed)
	})
}

// A group with a predecessor starts at the predecessor's committed offsets and does not repeat its records.
func TestNewGroupStartsWhereItsPredecessorStopped(t *testing.T) {
	t.Parallel()
	_, brokers := oneEach(t, "early", "late", "out")
	put(t, brokers, keyed("early", "k", "done"), keyed("early", "k", "1"), keyed("late", "k", "2"))
	admin := kadm.NewClient(dial(t, brokers))
	before := kadm.Offsets{}
	before.AddOffset("early", 0, 1, -1)
	before.AddOffset("out", 0, 7, -1) // no input
	require.NoError(t, admin.CommitAllOffsets(t.Context(), "older", before))
	config := instance.Config{Brokers: brokers, Graph: forwarding("early", "late"), Predecessor: "older"}
	first := run(t, config)
	require.ElementsMatch(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)))
	first.stop()
	require.NoError(t, first.wait(t))

	// From then on its own offsets count.
	put(t, brokers, keyed("early", "k", "3"))
	run(t, config)
	require.ElementsMatch(t, []string{"1", "2", "3"}, values(take(t, brokers, "out", 3)))
}

func TestPredecessorWithoutOffsetsIsIgnored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"older", "missing"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := oneEach(t, "early", "late", "out")
			put(t, brokers, keyed("early", "k", "1"))
			admin := kadm.NewClient(dial(t, brokers))
			gone := kadm.Offsets{}
			gone.AddOffset("early", 0, 100, -1) // of a topic that was recreated
			require.NoError(t, admin.CommitAllOffsets(t.Context(), "older", gone))
			run(t, instance.Config{Brokers: brokers, Graph: forwarding("early", "late"), Predecessor: name})
			require.Equal(t, []string{"1"}, values(take(t, brokers, "out", 1)))
		})
	}
}

// An input that the group had not read yet when it was killed for the first time is not treated as a new input.
func TestInputOfAFirstRunThatEndedEarlyIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "early", "late", "out")
	put(t, brokers, keyed("early", "k", "1"), keyed("late", "k", "2"))
	var held atomic.Bool
	gate := make(chan struct{})
	release := func() {
		if held.CompareAndSwap(false, true) {
			close(gate)
		}
	}
	t.Cleanup(release)
	joined := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SyncGroup}, Count: -1, Observe: true})
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, topic := range r.(*kmsg.ListOffsetsRequest).Topics {
			if topic.Topic == "late" && joined.Hits() > 0 {
				c.SleepControl(func() { <-gate })
			}
		}
		return nil, nil, false
	})
	first := run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("early", "late"), Sarama: lively, InstanceID: "i1", Guarantee: instance.ExactlyOnce,
	})
	admin := kadm.NewClient(dial(t, brokers))
	eventually(t, func() bool { return committedAt(t, admin, "g", "early", 0) == 1 })
	first.Kill()
	release()
	require.ErrorIs(t, first.wait(t), cut.ErrKilled)
	_, err := admin.LeaveGroup(t.Context(), kadm.LeaveGroup("g").InstanceIDs("i1")) // as its session's timeout does
	require.NoError(t, err)

	run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("early", "late"), Sarama: lively, InstanceID: "i1", Guarantee: instance.ExactlyOnce,
	})
	require.Equal(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)))
}

// Run returns nil if it is stopped before it has joined the group.
func TestStopOnStartupIsNotAFailure(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	for range 20 {
		inst, err := instance.New(instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, inst.Run(ctx))
		require.Zero(t, inst.Health().Restarts)
	}
}

// A failure also ends a member without partitions, which has no claim whose end would end Sarama's session.
func TestFailureEndsAMemberWithoutPartitions(t *testing.T) {
	t.Parallel()
	c, brokers := impatient(t)
	down := make(chan error, 100)
	instances := make([]*running, 3) // for two partitions
	for i := range instances {
		instances[i] = run(t, instance.Config{
			Brokers: brokers, Graph: forwarding("in"), Sarama: mortal,
			Restart: instance.Restart{Initial: time.Minute, Max: time.Minute},
			Hooks:   instance.Hooks{Restart: func(err error, _ time.Duration) { down <- err }},
		})
	}
	admin := kadm.NewClient(dial(t, brokers))
	var idle string
	eventually(t, func() bool {
		groups, err := admin.DescribeGroups(t.Context(), "g")
		if err != nil || len(groups["g"].Members) != len(instances) {
			return false
		}
		for _, m := range groups["g"].Members {
			if assigned, ok := m.Assigned.AsConsumer(); ok && len(assigned.Topics) == 0 {
				idle = m.MemberID
			}
		}
		for _, inst := range instances {
			if inst.Health().State != instance.Running {
				return false
			}
		}
		return idle != ""
	})
	c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.CoordinatorNotAvailable, Count: -1, TopLevel: true,
		When: func(r kmsg.Request) bool {
			return r.GetVersion() != saramaHeartbeat && r.(*kmsg.HeartbeatRequest).MemberID == idle
		},
	})
	receive(t, down)
}
