package instance_test

import (
	"sync"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// While the brokers do not answer, a failed transaction cannot be ended either.
func TestHealthShowsAFailedTransaction(t *testing.T) {
	t.Parallel()
	c, brokers := cluster(t, "in", "out")
	var network wire
	down := newRestarts(t)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: counting("g"), Sarama: network.config, InstanceID: "one", Guarantee: instance.ExactlyOnce,
		Hooks: instance.Hooks{Restart: down.hook},
	})
	inst.ready(t)
	put(t, brokers, keyed("in", "k", "x"))
	take(t, brokers, "out", 1)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.ProducerFenced, Count: 1})
	network.decide(func(key int16, _ []byte) fate {
		if key == int16(kmsg.Metadata) && fault.Hits() > 0 {
			return stuck
		}
		return sent
	})
	put(t, brokers, keyed("in", "k", "x"))
	eventually(t, func() bool { return inst.Health().State == instance.Degraded })
	require.Error(t, inst.Health().Err)
	require.Empty(t, down.failed, "it is not down yet")
	network.decide(nil)
	require.Error(t, receive(t, down.failed))
	down.goOn()
	require.Equal(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)))
}

// An instance whose failed run still waits for a callback handles no records.
func TestHealthShowsAFailureBeforeItsRunHasEnded(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		_, brokers := cluster(t, "in", "out")
		entered, leave := make(chan struct{}), make(chan struct{})
		var once sync.Once
		down := newRestarts(t)
		policy := cut.AtLeastOncePolicy()
		if guarantee == instance.ExactlyOnce {
			policy = cut.ExactlyOncePolicy()
		}
		policy.Force, policy.Lagging = testTimeout, testTimeout // the gate stays open while a callback waits
		inst := run(t, instance.Config{
			Brokers: brokers, Sarama: lively, InstanceID: "one", Guarantee: guarantee, Policy: policy,
			Hooks: instance.Hooks{Restart: down.hook},
			Graph: goka.DefineGroup("g", goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
				if ctx.Key() == "bad" {
					ctx.Fail(errBoom)
				}
				once.Do(func() { close(entered) })
				<-leave
			})),
		})
		put(t, brokers, keyed("in", good(), "x"))
		receive(t, entered)
		put(t, brokers, keyed("in", "bad", "x"))
		eventually(t, func() bool { return inst.Health().State == instance.Degraded })
		require.ErrorIs(t, inst.Health().Err, errBoom)
		require.Empty(t, down.failed, "it is not down yet")
		close(leave)
		require.ErrorIs(t, receive(t, down.failed), errBoom)
	})
}
