package instance_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// aged is the transactional closer's policy with one age for any load.
func aged(d time.Duration) cut.Policy {
	p := cut.ExactlyOncePolicy()
	p.Force, p.Backlog, p.Lagging = d, 0, 0
	return p
}

// BenchmarkRate is a group that reads, writes a row and emits, 1 KB each over 4 partitions, under both guarantees in one
// run: at a rate (latency from the moment a record was due, so that none is left out) and with a backlog to catch up
// with. CPU is that of this process, which also plays producer and reader where there is a rate, and on the embedded
// broker is the broker too. The transactions of one age are what the switch between two is measured against.
func BenchmarkRate(b *testing.B) {
	for _, load := range []struct {
		rate, records int
	}{{200, 800}, {1000, 4000}, {5000, 20_000}, {0, 200_000}} {
		name := fmt.Sprintf("%d-a-second", load.rate)
		if load.rate == 0 {
			name = "backlog"
		}
		base := 0.0
		for _, c := range []struct {
			name string
			cfg  instance.Config
		}{
			{"at-least-once", instance.Config{}},
			{"exactly-once", instance.Config{Guarantee: instance.ExactlyOnce}},
			{"exactly-once,10ms", instance.Config{Guarantee: instance.ExactlyOnce, Policy: aged(10 * time.Millisecond)}},
			{"exactly-once,100ms", instance.Config{Guarantee: instance.ExactlyOnce, Policy: aged(100 * time.Millisecond)}},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				c.cfg.InstanceID = "i1"
				var cpu float64
				for range b.N {
					if load.rate == 0 {
						cpu = benchBacklog(b, c.cfg, load.records)
					} else {
						cpu = benchRate(b, c.cfg, load.rate, load.records)
					}
				}
				if base == 0 {
					base = cpu
				}
				b.ReportMetric(cpu, "cpu-us/record")
				b.ReportMetric(cpu/base, "x-at-least-once")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

const ratePartitions = 4

// benchBacklog returns the CPU time of a record in microseconds.
func benchBacklog(b *testing.B, cfg instance.Config, records int) float64 {
	b.Helper()
	b.StopTimer()
	brokers, prefix := benchCluster(b, ratePartitions, "in", "out")
	fill(b, brokers, prefix+"in", records, 1000, 1000)
	done := make(chan struct{}, records)
	cfg.Brokers, cfg.StorageDir = brokers, b.TempDir()
	cfg.Graph = echoing(prefix+"g", prefix+"in", prefix+"out", done)
	b.StartTimer()
	before, start := cpuTime(b), time.Now()
	_, stop := benchInstance(b, cfg)
	for range records {
		<-done
	}
	stop() // with its last cut
	b.ReportMetric(float64(records)/time.Since(start).Seconds(), "records/s")
	return float64((cpuTime(b) - before).Nanoseconds()) / 1000 / float64(records)
}

// benchRate is an open loop.
func benchRate(b *testing.B, cfg instance.Config, rate, records int) float64 {
	b.Helper()
	b.StopTimer()
	brokers, prefix := benchCluster(b, ratePartitions, "in", "out")
	cfg.Brokers, cfg.StorageDir = brokers, b.TempDir()
	cfg.Graph = echoing(prefix+"g", prefix+"in", prefix+"out", nil)
	inst, stop := benchInstance(b, cfg)
	defer stop()
	require.Eventually(b, func() bool { return inst.Health().State == instance.Running }, 20*time.Second, time.Millisecond)
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(prefix+"out"), kgo.ProducerLinger(0),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(b, err)
	defer c.Close()
	b.StartTimer()

	warm := rate / 2
	due := func(start time.Time, i int) time.Time {
		return start.Add(time.Duration(i) * time.Second / time.Duration(rate))
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; i < warm+records && ctx.Err() == nil; <-tick.C {
			for ; i < warm+records && !due(start, i).After(time.Now()); i++ {
				value := make([]byte, 1000)
				binary.BigEndian.PutUint64(value, uint64(i))
				c.Produce(ctx, &kgo.Record{
					Topic: prefix + "in", Key: strconv.AppendInt([]byte("k"), int64(i%1000), 10), Value: value,
				}, nil)
			}
		}
	}()
	took := make([]time.Duration, 0, records)
	var before time.Duration
	for seen := 0; seen < warm+records; {
		fetches := c.PollFetches(ctx)
		require.NoError(b, ctx.Err(), "%d of %d", seen, warm+records)
		now := time.Now()
		for it := fetches.RecordIter(); !it.Done(); {
			i := int(binary.BigEndian.Uint64(it.Next().Value))
			if i >= warm {
				took = append(took, now.Sub(due(start, i)))
			}
			if seen++; seen == warm {
				before = cpuTime(b)
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	return float64((cpuTime(b) - before).Nanoseconds()) / 1000 / float64(records)
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var inst syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &inst))
	return time.Duration(inst.Utime.Nano() + inst.Stime.Nano())
}
