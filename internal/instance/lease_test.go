package instance_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// shortSession is longer than a busy machine stands still: no member may lose its place before the test takes it away.
const shortSession = 5 * time.Second

func mortal() *sarama.Config {
	c := kafka.Config()
	c.Consumer.Group.Session.Timeout = shortSession
	c.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	c.Net.ReadTimeout = shortSession // Sarama waits as long for the answer to a heartbeat before a session can end
	return c
}

// impatient starts brokers that let a member have a short session. The coordinator is another than the topics' leader.
func impatient(t testing.TB) (*kfake.Cluster, []string) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "in", "out"),
		kfake.GroupMinSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, topic := range []string{"in", "out"} {
		for p := range int32(2) {
			require.NoError(t, c.MoveTopicPartition(topic, p, 1-c.CoordinatorFor("g")))
		}
	}
	return c, c.ListenAddrs()
}

// swallow leaves heartbeats without an answer until release is called.
func swallow(c *kfake.Cluster) (release func()) {
	var released atomic.Bool
	c.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, !released.Load()
	})
	return func() { released.Store(true) }
}

// deserted waits until the coordinator has removed the group's members.
func deserted(t testing.TB, brokers []string) {
	t.Helper()
	admin := kadm.NewClient(dial(t, brokers))
	eventually(t, func() bool {
		groups, err := admin.DescribeGroups(t.Context(), "g")
		return err == nil && len(groups["g"].Members) == 0
	})
}

// A member whose heartbeats do not arrive loses its partitions to another member without noticing. Kafka still accepts
// its records, so the member itself must stop sending.
func TestMemberWithoutHeartbeatsStopsSending(t *testing.T) {
	t.Parallel()
	t.Run("stock does", func(t *testing.T) {
		t.Parallel()
		c, brokers := impatient(t)
		r := stock(t, brokers, forwarding("in"), func(c *sarama.Config) {
			livelyStock(c)
			c.Consumer.Group.Session.Timeout = shortSession
			c.Net.ReadTimeout = shortSession
		})
		eventually(t, r.recovered)
		put(t, brokers, keyed("in", "k", "1"))
		take(t, brokers, "out", 1)
		t.Cleanup(swallow(c))
		deserted(t, brokers)
		put(t, brokers, keyed("in", "k", "2"))
		require.Equal(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)))
	})
	t.Run("ours does not", func(t *testing.T) {
		t.Parallel()
		c, brokers := impatient(t)
		sent := observe(c, "out")
		var sentAtRestart atomic.Int64
		down := make(chan error, 20)
		run(t, instance.Config{
			Brokers: brokers, Graph: forwarding("in"), Sarama: mortal,
			Hooks: instance.Hooks{Restart: func(err error, _ time.Duration) {
				sentAtRestart.Store(sent.Load())
				down <- err
			}},
		})
		put(t, brokers, keyed("in", "k", "1"))
		admin := kadm.NewClient(dial(t, brokers))
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", codec.PartitionOf("k", 2)) == 1 })
		release := swallow(c)
		t.Cleanup(release)
		deserted(t, brokers)
		put(t, brokers, keyed("in", "k", "2"))
		require.ErrorIs(t, receive(t, down), cut.ErrLease)
		require.Equal(t, int64(1), sentAtRestart.Load())
		release()
		require.Equal(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)), "by the current owner of the partition")
	})
}

// The lease expires if the coordinator rejects its heartbeats, even if it accepts Sarama's own.
func TestLeaseExpiresByItsOwnHeartbeats(t *testing.T) {
	t.Parallel()
	c, brokers := impatient(t)
	sent := observe(c, "out")
	down := make(chan int64, 20)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("in"), Sarama: mortal,
		Hooks: instance.Hooks{Restart: func(error, time.Duration) { down <- sent.Load() }},
	})
	inst.ready(t)
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.CoordinatorNotAvailable, Count: -1, TopLevel: true,
		When: func(r kmsg.Request) bool { return r.GetVersion() != saramaHeartbeat },
	})
	require.Zero(t, receive(t, down))
	require.ErrorIs(t, inst.Health().Err, cut.ErrLease)
	fault.Remove()
	put(t, brokers, keyed("in", "k", "1"))
	take(t, brokers, "out", 1)
}

// The answer to a join may be old when the member starts working: its process may have been suspended since.
func TestMemberSendsNothingBeforeAHeartbeatIsAcknowledged(t *testing.T) {
	t.Parallel()
	c, brokers := impatient(t)
	sent := observe(c, "out")
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.CoordinatorNotAvailable, Count: -1, TopLevel: true,
		When: func(r kmsg.Request) bool { return r.GetVersion() != saramaHeartbeat },
	})
	inst := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: mortal})
	put(t, brokers, keyed("in", "k", "1"))
	require.NoError(t, fault.Wait(t.Context(), 10))
	require.Zero(t, sent.Load())
	require.NotEqual(t, instance.Running, inst.Health().State)
	fault.Remove()
	take(t, brokers, "out", 1)
	require.Zero(t, inst.Health().Restarts)
}

// Another process with the same instance id takes over. The older instance ends and does not restart: a restart would fence
// the newer one, and the two would fence each other indefinitely.
func TestFencedInstanceDoesNotRestart(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	var restarts atomic.Int64
	older := run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("in"), Sarama: lively, InstanceID: "i1",
		Hooks: instance.Hooks{Restart: func(error, time.Duration) { restarts.Add(1) }},
	})
	older.ready(t)
	newer := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in"), Sarama: lively, InstanceID: "i1"})
	newer.ready(t)
	err := older.wait(t)
	require.ErrorIs(t, err, cut.ErrFenced)
	require.ErrorContains(t, err, "group g, instance i1")
	require.Zero(t, restarts.Load())
	require.Equal(t, instance.Stopped, older.Health().State)

	put(t, brokers, keyed("in", "k", "1"))
	take(t, brokers, "out", 1)
	require.Zero(t, newer.Health().Restarts)
}
