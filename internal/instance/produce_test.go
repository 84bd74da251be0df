package instance_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/instance"
)

// produced is how batches of a topic were sent.
type produced struct {
	mu   sync.Mutex
	acks map[int16]int
	ids  map[bool]int // by: they have a producer id
}

func watchProduced(c *kfake.Cluster, topics ...string) *produced {
	w := &produced{acks: map[int16]int{}, ids: map[bool]int{}}
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, t := range req.Topics {
			name := t.Topic
			if info := c.TopicIDInfo(t.TopicID); info != nil {
				name = info.Topic
			}
			for _, watched := range topics {
				if name == watched {
					w.note(req.Acks, t.Partitions)
				}
			}
		}
		return nil, nil, false
	})
	return w
}

func (w *produced) note(acks int16, partitions []kmsg.ProduceRequestTopicPartition) {
	for _, p := range partitions {
		var batch kmsg.RecordBatch
		if batch.ReadFrom(p.Records) == nil {
			w.acks[acks]++
			w.ids[batch.ProducerID >= 0]++
		}
	}
}

// With acks=1 and without idempotence, acknowledged records are lost on a leader change and repeated on a retry.
func TestProducerIsIdempotentAndWaitsForAll(t *testing.T) {
	t.Parallel()
	t.Run("stock is not and does not", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		w := watchProduced(c, "out", "g-table")
		put(t, brokers, keyed("in", "k", "x"))
		stock(t, brokers, counting("g"), oldest)
		take(t, brokers, "out", 1)
		take(t, brokers, "g-table", 1)
		require.Equal(t, map[int16]int{1: 2}, w.acks)
		require.Equal(t, map[bool]int{false: 2}, w.ids)
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		w := watchProduced(c, "out", "g-table")
		put(t, brokers, keyed("in", "k", "x"))
		run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
		take(t, brokers, "out", 1)
		take(t, brokers, "g-table", 1)
		require.Equal(t, map[int16]int{-1: 2}, w.acks)
		require.Equal(t, map[bool]int{true: 2}, w.ids)
	})
}

// franz-go partitions keys as Java does; Goka's FNV-1a puts them on other partitions, so that the topics of a session
// are not copartitioned.
func TestKeysArePartitionedAsByFranzGo(t *testing.T) {
	t.Parallel()
	const keys = 20
	elsewhere := func(t *testing.T, brokers []string) (n int) {
		t.Helper()
		in := map[string]int32{}
		for _, r := range take(t, brokers, "in", keys) {
			in[string(r.Key)] = r.Partition
		}
		for _, r := range append(take(t, brokers, "out", keys), take(t, brokers, "g-table", keys)...) {
			if in[string(r.Key)] != r.Partition {
				n++
			}
		}
		return n
	}
	start := func(t *testing.T) []string {
		t.Helper()
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "in", "out"))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		records := make([]*kgo.Record, keys)
		for i := range records {
			records[i] = keyed("in", fmt.Sprintf("key-%d", i), "x")
		}
		put(t, c.ListenAddrs(), records...)
		return c.ListenAddrs()
	}
	t.Run("stock elsewhere", func(t *testing.T) {
		t.Parallel()
		brokers := start(t)
		stock(t, brokers, counting("g"), oldest)
		require.NotZero(t, elsewhere(t, brokers))
	})
	t.Run("ours there", func(t *testing.T) {
		t.Parallel()
		brokers := start(t)
		run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
		require.Zero(t, elsewhere(t, brokers))
	})
}
