package instance_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// benchCluster starts an embedded broker with the topics, or creates them on the Kafka of KAFKA_BOOTSTRAP_SERVERS.
// Their names, and those of groups, begin with what it returns second.
func benchCluster(b *testing.B, partitions int32, topics ...string) ([]string, string) {
	b.Helper()
	if servers := os.Getenv("KAFKA_BOOTSTRAP_SERVERS"); servers != "" {
		brokers, prefix := strings.Split(servers, ","), fmt.Sprintf("bench%d-", time.Now().UnixNano())
		admin, err := sarama.NewClusterAdmin(brokers, kafka.Config())
		require.NoError(b, err)
		for _, name := range topics {
			require.NoError(b, admin.CreateTopic(prefix+name,
				&sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1}, false))
		}
		require.NoError(b, admin.Close())
		return brokers, prefix
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topics...))
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c.ListenAddrs(), ""
}

// fill produces n records of size bytes over keys, as fast as it can.
func fill(b *testing.B, brokers []string, topic string, n, keys, size int) {
	b.Helper()
	conf := kafka.Config()
	conf.Producer.Return.Successes = true
	p, err := sarama.NewAsyncProducer(brokers, conf)
	require.NoError(b, err)
	value := make([]byte, size)
	for i := range value {
		value[i] = 'x'
	}
	go func() {
		for i := range n {
			p.Input() <- &sarama.ProducerMessage{
				Topic: topic, Key: sarama.StringEncoder("k" + strconv.Itoa(i%keys)), Value: sarama.ByteEncoder(value),
			}
		}
	}()
	for range n {
		<-p.Successes()
	}
	require.NoError(b, p.Close())
}

// echoing keeps the last record of a key and emits it.
func echoing(group, in, out string, done chan<- struct{}) *goka.GroupGraph {
	return goka.DefineGroup(goka.Group(group),
		goka.Input(goka.Stream(in), codec.Bytes(), func(ctx goka.Context, m any) {
			v := m.(codec.Decoded[[]byte]).Raw
			_ = ctx.Value()
			ctx.Emit(goka.Stream(out), ctx.Key(), v)
			ctx.SetValue(v)
			if done != nil {
				done <- struct{}{}
			}
		}),
		goka.Output(goka.Stream(out), codec.Bytes()), goka.Persist(codec.Bytes()))
}

func benchInstance(b *testing.B, cfg instance.Config) (*instance.Instance, func()) {
	b.Helper()
	cfg.Sarama, cfg.Logger = kafka.Config, zap.NewNop()
	inst, err := instance.New(cfg)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- inst.Run(ctx) }()
	return inst, func() {
		cancel()
		require.NoError(b, <-ended)
	}
}

// BenchmarkGroup is a group that reads, writes a row and emits, 1 KB each, on the embedded broker: ours and, as the
// ratio's other side, stock Goka with immediate flush and the same acks in the same run.
func BenchmarkGroup(b *testing.B) {
	const records = 20_000
	rate := map[string]float64{}
	for _, who := range []string{"stock", "turntable"} {
		b.Run(who, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				brokers, prefix := benchCluster(b, 1, "in", "out")
				fill(b, brokers, prefix+"in", records, 1000, 1000)
				done := make(chan struct{}, records)
				graph := echoing(prefix+"g", prefix+"in", prefix+"out", done)
				b.StartTimer()
				start := time.Now()
				var stop func()
				if who == "stock" {
					r := stock(b, brokers, graph, func(c *sarama.Config) {
						*c = *kafka.Config()
						c.Consumer.Offsets.AutoCommit.Enable = true
					})
					stop = func() { r.stop(); _ = r.wait(b) }
				} else {
					_, stop = benchInstance(b, instance.Config{Brokers: brokers, Graph: graph})
				}
				for range records {
					<-done
				}
				rate[who] = records / time.Since(start).Seconds()
				b.StopTimer()
				stop()
				b.StartTimer()
			}
			b.ReportMetric(rate[who], "records/s")
			b.ReportMetric(0, "ns/op")
			if rate["stock"] > 0 && who == "turntable" {
				b.ReportMetric(rate["turntable"]/rate["stock"], "x-stock")
			}
		})
	}
}

// BenchmarkHop is the latency from a producer's send to a read-committed consumer's receipt, one record at a time, over
// 1 and 4 groups in a chain, under both guarantees.
func BenchmarkHop(b *testing.B) {
	for name, guarantee := range map[string]instance.Guarantee{"atleastonce": instance.AtLeastOnce, "exactlyonce": instance.ExactlyOnce} {
		for _, hops := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/%dhops", name, hops), func(b *testing.B) { benchHops(b, guarantee, hops) })
		}
	}
}

func benchHops(b *testing.B, guarantee instance.Guarantee, hops int) {
	names := make([]string, hops+1)
	for i := range names {
		names[i] = "t" + strconv.Itoa(i)
	}
	brokers, prefix := benchCluster(b, 1, names...)
	for i := range hops {
		inst, stop := benchInstance(b, instance.Config{
			Brokers: brokers, Guarantee: guarantee, InstanceID: "i1",
			Graph: echoing(prefix+"g"+strconv.Itoa(i), prefix+names[i], prefix+names[i+1], nil),
		})
		defer stop()
		require.Eventually(b, func() bool { return inst.Health().State == instance.Running }, 20*time.Second, time.Millisecond)
	}
	c, err := sarama.NewConsumer(brokers, kafka.Config())
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	pc, err := c.ConsumePartition(prefix+names[hops], 0, sarama.OffsetOldest)
	require.NoError(b, err)
	defer func() { require.NoError(b, pc.Close()) }()
	p, err := sarama.NewSyncProducer(brokers, kafka.Config())
	require.NoError(b, err)
	defer func() { require.NoError(b, p.Close()) }()

	const warm = 20
	took := make([]time.Duration, 0, b.N)
	for i := range b.N + warm {
		start := time.Now()
		_, _, err := p.SendMessage(&sarama.ProducerMessage{
			Topic: prefix + names[0], Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder("x"),
		})
		require.NoError(b, err)
		<-pc.Messages()
		if i >= warm {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRecovery is the time from Run to the first moment of Running with a table of 100,000 rows of 1 KB: read from
// the changelog, and restarted with the store on disk.
func BenchmarkRecovery(b *testing.B) {
	const rows = 100_000
	brokers, prefix := benchCluster(b, 1, "in", "out", "g-table")
	fill(b, brokers, prefix+"g-table", rows, rows, 1000)
	dir := b.TempDir()
	for _, c := range []struct{ name, dir string }{{"memory", ""}, {"leveldb", dir}, {"leveldb-restart", dir}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				start := time.Now()
				inst, stop := benchInstance(b, instance.Config{
					Brokers: brokers, Graph: echoing(prefix+"g", prefix+"in", prefix+"out", nil), StorageDir: c.dir,
				})
				require.Eventually(b, func() bool { return inst.Health().State == instance.Running }, time.Minute,
					time.Millisecond)
				took := time.Since(start)
				b.ReportMetric(took.Seconds()*1000, "ms")
				b.ReportMetric(rows/took.Seconds(), "rows/s")
				stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
