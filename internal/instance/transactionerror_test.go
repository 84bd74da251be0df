package instance_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/instance"
)

// reason is Sarama's text of an error, which is all that Goka keeps of it.
func reason(e *kerr.Error) string { return sarama.KError(e.Code).Error() }

// A transaction that is in error cannot be committed any more. Sarama takes its error for a broken connection and
// retries what belongs to it for many seconds.
func TestInstanceRestartsSoonAfterAFatalTransactionError(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.Produce} {
		for _, fatal := range []*kerr.Error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping} {
			t.Run(key.Name()+"/"+fatal.Message, func(t *testing.T) {
				t.Parallel()
				c, brokers := cluster(t, "in", "out")
				down := newRestarts(t)
				inst := run(t, instance.Config{
					Brokers: brokers, Graph: counting("g"), Sarama: lively, InstanceID: "one", Guarantee: instance.ExactlyOnce,
					Hooks: instance.Hooks{Restart: down.hook}, Restart: instance.Restart{Initial: time.Millisecond},
				})
				inst.ready(t)
				put(t, brokers, keyed("in", "k", "x"))
				take(t, brokers, "out", 1)
				faulty := kfake.Fault{Keys: []kmsg.Key{key}, Err: fatal, Count: 1}
				switch key {
				case kmsg.AddOffsetsToTxn, kmsg.EndTxn:
					faulty.TopLevel = true
				case kmsg.Produce:
					faulty.Topic = "out"
				}
				fault := c.Fault(faulty)
				put(t, brokers, keyed("in", "k", "x"), keyed("in", "k", "x"))
				require.NoError(t, fault.Wait(t.Context(), 1))
				began := time.Now()
				require.ErrorContains(t, receive(t, down.failed), reason(fatal))
				require.Less(t, time.Since(began), 5*time.Second)
				down.goOn()
				require.Equal(t, []string{"1", "2", "3"}, values(take(t, brokers, "out", 3)))
			})
		}
	}
}

// The brokers fence a producer whose transactional id is initialized elsewhere, as an operator's tool does. That alone is
// no other process with the instance id, so the instance restarts.
func TestInstanceWhoseProducerIsFencedRestartsSoon(t *testing.T) {
	t.Parallel()
	brokers, name := anyBroker(t)
	down := newRestarts(t)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: countingOf(name), Sarama: lively, InstanceID: "one", Guarantee: instance.ExactlyOnce,
		Hooks: instance.Hooks{Restart: down.hook}, Restart: instance.Restart{Initial: time.Millisecond},
	})
	inst.ready(t)
	put(t, brokers, keyed(name+"-in", "k", "x"))
	take(t, brokers, name+"-out", 1)
	_, _, err := dial(t, brokers, kgo.TransactionalID(name+"/one")).ProducerID(t.Context())
	require.NoError(t, err)
	put(t, brokers, keyed(name+"-in", "k", "x"))
	began := time.Now()
	require.Error(t, receive(t, down.failed))
	require.Less(t, time.Since(began), 5*time.Second)
	down.goOn()
	require.Equal(t, []string{"1", "2"}, values(take(t, brokers, name+"-out", 2)))
}

// Sarama asks a transaction coordinator 400 times. Brokers that are gone before a transaction is committed must not stop the
// instance in silence for as long.
func TestTransactionIsGivenUpWhenItsBrokersAreGone(t *testing.T) {
	t.Parallel()
	c, brokers := cluster(t, "in", "out")
	core, logged := observer.New(zap.WarnLevel)
	down := newRestarts(t)
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: forwarding("in"), Sarama: lively, Guarantee: instance.ExactlyOnce, InstanceID: "i",
		TransactionTimeout: time.Second, Logger: zap.New(core), Hooks: instance.Hooks{Restart: down.hook},
	})
	inst.ready(t)
	gone := make(chan struct{}, 1)
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		gone <- struct{}{}
		go c.Close()
		return nil, errBoom, true
	})
	put(t, brokers, keyed("in", "k", "x"))
	receive(t, gone)
	require.Error(t, receive(t, down.failed))
	require.NotZero(t, logged.FilterMessageSnippet("a cut is not committed").Len())
	close(down.again)
}
