package kafka_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestConfigIsValidAndHardened(t *testing.T) {
	c := kafka.Config()
	require.NoError(t, c.Validate())
	require.Equal(t, sarama.WaitForAll, c.Producer.RequiredAcks)
	require.True(t, c.Producer.Idempotent)
	require.Equal(t, 1, c.Net.MaxOpenRequests)
	require.Zero(t, c.Producer.Flush.Frequency)
	require.Zero(t, c.Producer.Flush.Bytes)
	require.Zero(t, c.Producer.Flush.Messages)
	require.Equal(t, sarama.OffsetOldest, c.Consumer.Offsets.Initial)
	require.Equal(t, sarama.ReadCommitted, c.Consumer.IsolationLevel)
	require.False(t, c.Consumer.Offsets.AutoCommit.Enable)
	require.Equal(t, "copartition", c.Consumer.Group.Rebalance.Strategy.Name())
	require.Greater(t, c.Net.ReadTimeout, c.Consumer.Group.Rebalance.Timeout, "the answer to a join")
}

func TestConfigsAreIndependent(t *testing.T) {
	a, b := kafka.Config(), kafka.Config()
	a.ClientID = "a"
	require.NotEqual(t, a.ClientID, b.ClientID)
	require.NotSame(t, a.MetricRegistry, b.MetricRegistry)
	c := kafka.Copy(a)
	require.Equal(t, "a", c.ClientID)
	require.NotSame(t, a.MetricRegistry, c.MetricRegistry)
}

func TestClientsKeepNoMetrics(t *testing.T) {
	r := kafka.Config().MetricRegistry
	metrics.GetOrRegisterMeter("m", r).Mark(1)
	require.Zero(t, metrics.GetOrRegisterMeter("m", r).Count())
	h := r.GetOrRegister("h", func() metrics.Histogram { return metrics.NewHistogram(metrics.NewUniformSample(1)) })
	h.(metrics.Histogram).Update(1)
	require.Zero(t, h.(metrics.Histogram).Count())
	metrics.GetOrRegisterCounter("c", r).Inc(1)
	require.Zero(t, metrics.GetOrRegisterCounter("c", r).Count())
	require.Empty(t, r.GetAll())
}

func TestKeysArePartitionedAsByJava(t *testing.T) {
	p := kafka.Config().Producer.Partitioner("topic")
	for _, key := range []string{"", "a", "21", "foobar", "session-4711", "ü", "a\x00"} {
		for _, n := range []int32{1, 3, 4, 12} {
			got, err := p.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, n)
			require.NoError(t, err)
			require.Equal(t, codec.PartitionOf(key, n), got, "%q of %d", key, n)
		}
	}
}

func TestRetriesLastLongEnoughForANewLeader(t *testing.T) {
	c := kafka.Config()
	total := time.Duration(0)
	for i := 1; i <= c.Producer.Retry.Max; i++ {
		total += c.Producer.Retry.BackoffFunc(i, c.Producer.Retry.Max)
	}
	require.Equal(t, 5*time.Millisecond, c.Producer.Retry.BackoffFunc(1, 20))
	require.Greater(t, total, 5*time.Second)
	require.Less(t, total, 15*time.Second)
}
