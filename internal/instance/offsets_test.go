package instance_test

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// hold keeps produce requests for a topic from being served until release is called.
func hold(c *kfake.Cluster, topic string) (release func()) {
	gate := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, t := range r.(*kmsg.ProduceRequest).Topics {
			if t.Topic == topic || c.TopicIDInfo(t.TopicID) != nil && c.TopicIDInfo(t.TopicID).Topic == topic {
				c.SleepControl(func() { <-gate })
			}
		}
		return nil, nil, false
	})
	var once atomic.Bool
	return func() {
		if once.CompareAndSwap(false, true) {
			close(gate)
		}
	}
}

// splitting emits records with the value "slow" to the topic slow and others to fast.
func splitting() *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
			v := m.(codec.Decoded[string]).Value
			ctx.Emit(goka.Stream(v), ctx.Key(), strconv.FormatInt(ctx.Offset(), 10))
		}),
		goka.Output("slow", codec.String()), goka.Output("fast", codec.String()))
}

// Stock Goka loses a record here: the output of record 0 hangs, records 1 to 5 finish, and offset 6 is committed.
func TestCommitNeverPassesAnUnfinishedRecord(t *testing.T) {
	t.Parallel()
	t.Run("stock loses it", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "slow", "fast")
		release := hold(c, "slow")
		send(t, brokers, "in", "k", "slow", "fast", "fast", "fast", "fast", "fast")
		stock(t, brokers, splitting(), oldest)
		t.Cleanup(release)
		read(t, brokers, "fast", 5)
		require.Eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 6 }, testTimeout,
			50*time.Millisecond)
	})
	t.Run("the cut waits", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "slow", "fast")
		release := hold(c, "slow")
		send(t, brokers, "in", "k", "slow", "fast", "fast", "fast", "fast", "fast")
		inst := run(t, instance.Config{Brokers: brokers, Graph: splitting()})
		read(t, brokers, "fast", 5)
		// The gate shuts for the cut a second after it is due: longer than that, and nothing is committed.
		require.Never(t, func() bool { return committed(t, brokers, "g", "in", 0) > 0 }, 1500*time.Millisecond,
			100*time.Millisecond)
		inst.Kill()
		require.LessOrEqual(t, committed(t, brokers, "g", "in", 0), int64(0))
		release() // a cut that waits for this output may still be committed
		require.ErrorIs(t, inst.wait(t), cut.ErrKilled)

		run(t, instance.Config{Brokers: brokers, Graph: splitting()})
		require.Equal(t, "0", string(read(t, brokers, "slow", 1)[0].Value))
		require.Eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 6 }, testTimeout,
			50*time.Millisecond)
	})
}

var errBoom = errors.New("boom")

// failing counts, and fails once at the nth record, after it has emitted and written its row.
func failing(n int64) *goka.GroupGraph {
	var seen atomic.Int64
	return goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			v := strconv.Itoa(count(ctx.Value()) + 1)
			ctx.Emit("out", ctx.Key(), v)
			ctx.SetValue(v)
			if seen.Add(1) == n {
				ctx.Fail(errBoom)
			}
		}),
		goka.Output("out", codec.String()), goka.Persist(codec.String()))
}

// Nothing of a cut with a failed record is committed, and the instance restarts by itself, with a kept and with a lost
// local store. At least once may repeat records but neither loses nor skips any.
func TestFailedRecordIsHandledAgain(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"lost store": "", "kept store": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := cluster(t, "in", "out")
			produce(t, brokers, "in", 30, 1)
			var restarts atomic.Pointer[error]
			inst := run(t, instance.Config{
				Brokers: brokers, Graph: failing(17), StorageDir: dir,
				Hooks: instance.Hooks{Restart: func(err error, _ time.Duration) { restarts.Store(&err) }},
			})
			require.Eventually(t, func() bool {
				v, err := inst.Get("k0")
				return err == nil && count(v) >= 30
			}, testTimeout, 10*time.Millisecond)
			require.NotNil(t, restarts.Load())
			require.ErrorIs(t, *restarts.Load(), errBoom, "the cause is kept through Goka")
			p := codec.PartitionOf("k0", 2)
			require.Eventually(t, func() bool { return committed(t, brokers, "g", "in", p) == 30 }, testTimeout,
				20*time.Millisecond)
		})
	}
}
