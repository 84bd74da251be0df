package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
)

// vectors are keys with their murmur2 as Kafka's Java client computes it, sign included, and their partitions among
// 1, 3, 4 and 12. Five of seven hashes are negative: there the absolute value would choose another partition.
var vectors = []struct {
	key        string
	java       int32
	partitions [4]int32
}{
	{"21", -973932308, [4]int32{0, 0, 0, 0}},
	{"foobar", -790332482, [4]int32{0, 0, 2, 6}},
	{"a-little-bit-long-string", -985981536, [4]int32{0, 2, 0, 8}},
	{"a-little-bit-longer-string", -1486304829, [4]int32{0, 2, 3, 11}},
	{"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, [4]int32{0, 2, 1, 5}},
	{"abc", 479470107, [4]int32{0, 0, 3, 3}},
	{"", 275646681, [4]int32{0, 0, 1, 9}},
}

var counts = [4]int32{1, 3, 4, 12}

func sum(key string) uint32 {
	h := codec.KeyHasher()()
	_, _ = h.Write([]byte(key))
	return h.Sum32()
}

func TestHashIsJavasMurmur2WithoutTheSignBit(t *testing.T) {
	for _, v := range vectors {
		require.Equal(t, uint32(v.java)&0x7fffffff, sum(v.key), v.key)
	}
}

func TestPartitionsAreThoseOfTheJavaProducer(t *testing.T) {
	for _, v := range vectors {
		for i, n := range counts {
			require.Equal(t, v.partitions[i], codec.PartitionOf(v.key, n), "%q of %d", v.key, n)
			require.Equal(t, v.partitions[i], saramaPartition(t, v.key, n), "%q of %d", v.key, n)
		}
	}
}

func saramaPartition(t testing.TB, key string, partitions int32) int32 {
	t.Helper()
	p, err := sarama.NewCustomHashPartitioner(codec.KeyHasher())("topic").
		Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, partitions)
	require.NoError(t, err)
	return p
}

// kgoPartition is where another client that follows Java puts the key.
func kgoPartition(key string, partitions int32) int32 {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("topic")
	return int32(p.Partition(&kgo.Record{Key: []byte(key)}, int(partitions)))
}

func TestKeysOfAllLengthsHaveThePartitionOfOtherClients(t *testing.T) {
	for length := range 300 {
		key := strings.Repeat(fmt.Sprintf("%d\xff-", length), length)[:length]
		for _, n := range []int32{1, 3, 4, 12, 1000003} {
			require.Equal(t, kgoPartition(key, n), codec.PartitionOf(key, n), "length %d of %d", length, n)
			require.Equal(t, kgoPartition(key, n), saramaPartition(t, key, n), "length %d of %d", length, n)
		}
	}
}

func TestPartKeysHaveThePartitionOfTheirKey(t *testing.T) {
	for _, v := range vectors {
		for _, part := range []string{v.key + "\x00", v.key + "\x001", v.key + "\x0012\x00"} {
			require.Equal(t, sum(v.key), sum(part), "%q", part)
			require.Equal(t, codec.PartitionOf(v.key, 12), codec.PartitionOf(part, 12), "%q", part)
		}
	}
}

func TestKeyCanBeWrittenInPieces(t *testing.T) {
	h := codec.KeyHasher()()
	for _, piece := range []string{"foo", "", "bar", "\x00baz", "more"} {
		n, err := h.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.Equal(t, sum("foobar"), h.Sum32())
	require.Equal(t, []byte{'x', 0x50, 0xe4, 0x7b, 0xbe}, h.Sum([]byte("x")))
	h.Reset()
	_, _ = h.Write([]byte("21"))
	require.Equal(t, sum("21"), h.Sum32())
	require.Equal(t, 4, h.Size())
	require.Equal(t, 4, h.BlockSize())
}

func TestPartitionOfZeroPartitionsIsMinusOne(t *testing.T) {
	require.Equal(t, int32(-1), codec.PartitionOf("key", 0))
	require.Equal(t, int32(-1), codec.PartitionOf("key", -3))
}
