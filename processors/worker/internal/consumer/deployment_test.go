package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// feed produces records at a steady rate until the returned function is called, which returns their number.
func (f *field) feed(partitions int32, every time.Duration) (stop func() int) {
	end, n := make(chan struct{}), make(chan int)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-end:
				n <- i
				return
			case <-ticker.C:
			}
			r := &kgo.Record{Topic: f.topic, Partition: int32(i) % partitions, Value: fmt.Append(nil, i)}
			if err := f.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				f.t.Error(err)
			}
		}
	}()
	return sync.OnceValue(func() int { close(end); return <-n })
}

// lengthy returns a handler that takes up to limit, and counts its calls in b. It does not look for earlier results.
func lengthy(b *book, limit time.Duration) handler {
	return func(_ context.Context, d source.Delivery) error {
		b.add(d)
		done := make(chan struct{})
		time.AfterFunc(rand.N(limit), func() { close(done) })
		<-done
		return nil
	}
}

func (f *field) allCommitted(partitions int32) bool {
	for p := range partitions {
		ends, err := f.admin.ListEndOffsets(context.Background(), f.topic)
		end, ok := ends.Lookup(f.topic, p)
		if err != nil || !ok || end.Offset > 0 && f.committed(p) != end.Offset {
			return false
		}
	}
	return true
}

func TestRollingDeploymentMakesEachCallOnce(t *testing.T) {
	const partitions = 6
	f := newField(t, partitions)
	var b book
	stops := make([]func(), 3)
	for i := range stops {
		stops[i] = f.run(f.worker(lengthy(&b, 2*time.Second)))
	}
	stopFeed := f.feed(partitions, 40*time.Millisecond)
	defer stopFeed()
	f.eventually(func() bool { return b.calls() > 20 })
	for i := range stops {
		next := f.worker(lengthy(&b, 2*time.Second))
		stop := f.run(next)
		f.eventually(func() bool { return next.owned() > 0 })
		stops[i]()
		stops[i] = stop
		at := b.calls()
		f.eventually(func() bool { return b.calls() > at+20 })
	}
	records := stopFeed()
	f.eventually(func() bool { return f.allCommitted(partitions) })
	require.Equal(t, records, b.len())
	require.Equal(t, records, b.calls())
}

func TestKillsRepeatOnlyWhatWasRunning(t *testing.T) {
	const partitions, kills, slots = 6, 2, 8
	f := newField(t, partitions)
	var b book
	start := func() *worker {
		w := f.worker(lengthy(&b, time.Second))
		w.Concurrency = slots
		f.run(w)
		return w
	}
	workers := []*worker{start(), start(), start()}
	stopFeed := f.feed(partitions, 40*time.Millisecond)
	defer stopFeed()
	for i := range kills {
		at := b.calls()
		f.eventually(func() bool { return b.calls() > at+20 })
		victim := i % len(workers)
		workers[victim].wires.cut()
		workers[victim] = start()
	}
	records := stopFeed()
	f.eventually(func() bool { return f.allCommitted(partitions) })
	require.Equal(t, records, b.len())
	t.Logf("%d calls for %d records", b.calls(), records)
	// A member that was cut off runs what it has read until it stops; more than its slots cannot run at a time.
	require.LessOrEqual(t, b.calls(), records+kills*2*slots)
}
