package instance

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/kafka"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

func TestDivergenceIsTheFirstRecordOfALaterEpoch(t *testing.T) {
	const most = 500
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(most, "in"))
	require.NoError(t, err)
	defer k.Close()
	client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	defer client.Close()
	conf := kafka.Config()
	conf.Producer.Return.Successes = true
	conf.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(k.ListenAddrs(), conf)
	require.NoError(t, err)
	defer producer.Close()
	partition := int32(0) // a partition for each check
	rapid.Check(t, func(t *rapid.T) {
		if partition == most {
			t.Skip("no partition is left")
		}
		p := partition
		partition++
		var ends []int64 // by epoch
		end := int64(0)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 5).Draw(t, "records of each epoch") {
			if len(ends) > 0 {
				require.NoError(t, k.MoveTopicPartition("in", p, 0))
			}
			for range n {
				_, _, err := producer.SendMessage(&sarama.ProducerMessage{
					Topic: "in", Partition: p, Value: sarama.StringEncoder("v"),
				})
				require.NoError(t, err)
			}
			end += int64(n)
			ends = append(ends, end)
		}
		for epoch, want := range ends {
			got, err := Divergence(client, "in", p, int32(epoch))
			require.NoError(t, err)
			require.Equal(t, want, got, "epoch %d of %v", epoch, ends)
		}
		got, err := Divergence(client, "in", p, int32(len(ends)))
		require.NoError(t, err)
		require.Equal(t, end, got, "an epoch that is yet to come")
	})
}
