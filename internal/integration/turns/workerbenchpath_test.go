//go:build unix

package turns

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/worker"
)

// consuming starts a consumer of a topic that passes each record's value to handle in up to slots goroutines.
type consuming func(b *testing.B, brokers []string, group string, slots int, handle func(value []byte)) (stop func())

// BenchmarkPath compares a worker in both modes with a plain loop over a consumer group of franz-go, which commits what it
// has handled every 5 s and knows neither retries nor locks nor handovers. All have the same handler, which counts.
//
//	busy   b.N records of 1 KiB wait: records per second from the first one on, CPU per record with the start of the
//	       group, and both as a multiple of the plain loop's
//	calls  the same with calls of 5 ms
//	paced  each record is written when the one before was handled: latency from the write to the handler
//
// On the embedded broker, the CPU includes the broker's. With the tag kafka it is that
// of the consumer alone.
func BenchmarkPath(b *testing.B) {
	const slots = 16
	brokers := testbroker.Start(b)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(0))
	require.NoError(b, err)
	defer client.Close()
	paths := []struct {
		name  string
		start consuming
	}{
		{"plain-loop", startPlain}, {"share-group", startWorker(worker.ShareGroup)}, {"consumer-group", startWorker(worker.ConsumerGroup)},
	}
	plain := map[string]result{}
	for _, p := range paths {
		for name, call := range map[string]time.Duration{"busy": 0, "calls": 5 * time.Millisecond} {
			b.Run(p.name+"/"+name, func(b *testing.B) {
				got := busy(b, client, brokers, p.start, slots, call)
				if p.name == paths[0].name {
					plain[name] = got
				}
				b.ReportMetric(got.rate, "records/s")
				b.ReportMetric(got.cpu, "CPU-µs/record")
				b.ReportMetric(got.rate/plain[name].rate, "x-plain-rate")
				b.ReportMetric(got.cpu/plain[name].cpu, "x-plain-CPU")
			})
		}
		b.Run(p.name+"/paced", func(b *testing.B) {
			topic := createTopic(b, client)
			handled := make(chan string, slots)
			stop := p.start(b, brokers, topic, slots, func(value []byte) { handled <- string(value) })
			defer stop()
			produce(b, client, topic, []byte("first"))
			require.Equal(b, "first", <-handled)
			waits := make([]time.Duration, b.N)
			b.ResetTimer()
			for i := range waits {
				began := time.Now()
				produce(b, client, topic, strconv.AppendInt(nil, int64(i), 10))
				require.Equal(b, strconv.Itoa(i), <-handled)
				waits[i] = time.Since(began)
			}
			b.StopTimer()
			slices.Sort(waits)
			b.ReportMetric(float64(waits[b.N/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(waits[b.N*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

type result struct{ rate, cpu float64 } // records per second, microseconds per record

// busy lets a consumer handle b.N records that wait, each in a call of some length.
func busy(b *testing.B, client *kgo.Client, brokers []string, start consuming, slots int, call time.Duration) result {
	topic, value := createTopic(b, client), make([]byte, 1024)
	produce(b, client, topic, value)
	for range b.N - 1 {
		client.Produce(b.Context(), &kgo.Record{Topic: topic, Value: value}, nil)
	}
	require.NoError(b, client.Flush(b.Context()))
	var handled atomic.Int64
	var began sync.Once
	ended, before := make(chan struct{}), processorTime()
	stop := start(b, brokers, topic, slots, func([]byte) {
		began.Do(b.ResetTimer) // a group takes seconds to form
		if call > 0 {
			<-time.After(call)
		}
		if handled.Add(1) == int64(b.N) {
			close(ended)
		}
	})
	defer stop()
	<-ended
	b.StopTimer()
	return result{
		rate: float64(b.N) / b.Elapsed().Seconds(),
		cpu:  float64((processorTime() - before).Nanoseconds()) / float64(b.N) / 1000,
	}
}

func createTopic(b *testing.B, client *kgo.Client) string {
	name := testbroker.Agent()
	_, err := kadm.NewClient(client).CreateTopics(b.Context(), 4, 1, nil, name)
	require.NoError(b, err)
	return name
}

func produce(b *testing.B, client *kgo.Client, topic string, value []byte) {
	require.Eventually(b, func() bool { // a broker may not know a new topic yet
		return client.ProduceSync(b.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr() == nil
	}, wait, time.Millisecond)
}

func startWorker(mode worker.Mode) consuming {
	return func(b *testing.B, brokers []string, group string, slots int, handle func([]byte)) (stop func()) {
		w, err := worker.New([]string{group}, func(_ context.Context, r worker.Record) error {
			handle(r.Value)
			return nil
		}, worker.Config{Group: group, Concurrency: slots, Mode: mode, Drop: true})
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx, brokers) }()
		return func() { cancel(); require.NoError(b, <-ended) }
	}
}

func startPlain(b *testing.B, brokers []string, group string, slots int, handle func([]byte)) (stop func()) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitMarks())
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	records := make(chan *kgo.Record)
	var running sync.WaitGroup
	for range slots {
		running.Go(func() {
			for r := range records {
				handle(r.Value)
				client.MarkCommitRecords(r)
			}
		})
	}
	running.Go(func() {
		defer close(records)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records <- r })
		}
	})
	return func() { cancel(); running.Wait(); client.Close() }
}
