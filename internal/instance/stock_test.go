package instance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// stock runs a graph as Goka does by itself, as the control of a regression test: the fault must show in it. Only what
// keeps it from starting on one broker is changed (replication), and what change asks for.
func stock(t testing.TB, brokers []string, g *goka.GroupGraph, change func(*sarama.Config), more ...goka.ProcessorOption,
) *running {
	t.Helper()
	_, r := stockProcessor(t, brokers, g, change, more...)
	return r
}

func stockProcessor(t testing.TB, brokers []string, g *goka.GroupGraph, change func(*sarama.Config),
	more ...goka.ProcessorOption,
) (*goka.Processor, *running) {
	t.Helper()
	conf := func() *sarama.Config {
		c := goka.DefaultConfig()
		c.Version = sarama.V3_6_0_0
		if change != nil {
			change(c)
		}
		return c
	}
	topics := goka.NewTopicManagerConfig()
	topics.Table.Replication, topics.Stream.Replication = 1, 1
	options := append([]goka.ProcessorOption{
		goka.WithProducerBuilder(goka.ProducerBuilderWithConfig(conf())),
		goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(conf())),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(conf())),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(conf(), topics)),
		goka.WithStorageBuilder(storage.MemoryBuilder()),
		goka.WithLogger(quiet{}),
	}, more...)
	p, err := goka.NewProcessor(brokers, g, options...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, done: make(chan error, 1), recovered: p.Recovered}
	go func() { r.done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.done:
		case <-time.After(90 * time.Second):
			t.Error("the stock processor does not stop")
		}
	})
	return p, r
}

type quiet struct{}

func (quiet) Print(...any)          {}
func (quiet) Println(...any)        {}
func (quiet) Printf(string, ...any) {}

func oldest(c *sarama.Config) { c.Consumer.Offsets.Initial = sarama.OffsetOldest }

// committed is a group's committed offset of partition, -1 where there is none.
func committed(t testing.TB, brokers []string, group, topic string, partition int32) int64 {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokers, kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	resp, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return -1
	}
	require.NoError(t, err)
	b := resp.GetBlock(topic, partition)
	if b == nil {
		return -1
	}
	return b.Offset
}

// oneEach starts brokers, and puts each of the one-partition topics on a broker of its own.
func oneEach(t testing.TB, topics ...string) (*kfake.Cluster, []string) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(len(topics)), kfake.SeedTopics(1, topics...))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for i, topic := range topics {
		require.NoError(t, c.MoveTopicPartition(topic, 0, int32(i)))
	}
	return c, c.ListenAddrs()
}
