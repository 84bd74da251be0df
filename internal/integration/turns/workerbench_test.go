package turns

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/worker"
)

// BenchmarkSlots reports what a worker with all slots busy holds: connections to one broker, goroutines and heap. On Linux.
func BenchmarkSlots(b *testing.B) {
	brokers := testbroker.Start(b)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(b, err)
	defer client.Close()
	for _, mode := range []worker.Mode{worker.ShareGroup, worker.ConsumerGroup} {
		for _, slots := range []int{16, 256} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(mode.String(), " ", "-"), slots), func(b *testing.B) {
				group := testbroker.Agent()
				_, err := kadm.NewClient(client).CreateTopics(b.Context(), 4, 1, nil, group)
				require.NoError(b, err)
				for i := range slots {
					r := &kgo.Record{Topic: group, Key: fmt.Append(nil, i), Value: make([]byte, 1024)}
					require.NoError(b, client.ProduceSync(b.Context(), r).FirstErr())
				}
				before := measure()
				began, release, ended := make(chan struct{}, slots), make(chan struct{}), make(chan error, 1)
				w, err := worker.New([]string{group}, func(context.Context, worker.Record) error {
					began <- struct{}{}
					<-release
					return nil
				}, worker.Config{Group: group, Concurrency: slots, Mode: mode, Drop: true})
				require.NoError(b, err)
				ctx, stop := context.WithCancel(context.Background())
				go func() { ended <- w.Run(ctx, brokers) }()
				for range slots {
					<-began
				}
				busy := measure()
				b.ReportMetric(float64(busy.sockets-before.sockets), "connections")
				b.ReportMetric(float64(busy.goroutines-before.goroutines), "goroutines")
				b.ReportMetric(float64(busy.heap-before.heap)/1024, "KiB-heap")
				b.ReportMetric(0, "ns/op")
				close(release)
				stop()
				require.NoError(b, <-ended)
			})
		}
	}
}

type usage struct {
	sockets, goroutines int
	heap                int64
}

func measure() (u usage) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap, u.goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			u.sockets++
		}
	}
	if testbroker.Embedded {
		u.sockets /= 2 // both ends are in this process
	}
	return u
}
