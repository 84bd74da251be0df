package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

func TestLongCallIsMadeOnceWhenASecondWorkerStarts(t *testing.T) {
	f := newField(t, 4)
	for p := range int32(4) {
		f.put(p, 1, keyless)
	}
	var b book
	release := make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	handle := func(ctx context.Context, d source.Delivery) error {
		b.add(d)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	worker := func() *worker {
		w := f.worker(handle)
		w.Handover = time.Hour
		return w
	}
	f.run(worker())
	f.eventually(func() bool { return b.calls() == 4 })
	f.run(worker())
	require.Never(t, func() bool { return b.calls() > 4 }, 2*rebalance+time.Second, 50*time.Millisecond,
		"calls longer than the rebalance timeout continue, and the new owner of their partition defers their records")
	end()
	// The new owner of a partition learns that its record is settled, and does not wait until the handover has passed.
	f.eventually(func() bool {
		return f.committed(0) == 1 && f.committed(1) == 1 && f.committed(2) == 1 && f.committed(3) == 1
	})
	require.Equal(t, 4, b.calls())
}

func TestCallContinuesWhenItsPartitionReturns(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 1, keyless)
	f.put(1, 1, keyless)
	var b book
	release := make(chan struct{})
	handle := func(ctx context.Context, d source.Delivery) error {
		b.add(d)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	one := f.worker(handle)
	f.run(one)
	f.eventually(func() bool { return b.calls() == 2 })
	two := f.worker(handle)
	stop := f.run(two)
	f.eventually(func() bool { return two.owned() == 1 && one.owned() == 1 })
	stop()
	f.eventually(func() bool { return one.owned() == 2 })
	close(release)
	f.eventually(func() bool { return f.committed(0) == 1 && f.committed(1) == 1 })
	require.Equal(t, 2, b.calls())
}

func TestCallEndsWhenTheHandoverHasPassed(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 1, keyless)
	f.put(1, 1, keyless)
	var b book
	release, lost := make(chan struct{}), make(chan error, 2)
	repeated := make(chan bool, 4)
	handle := func(ctx context.Context, d source.Delivery) error {
		b.add(d)
		repeated <- d.Repeated
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			lost <- context.Cause(ctx)
			return nil // a verdict for a record that belongs to another member: it must not count
		}
	}
	worker := func() *worker {
		w := f.worker(handle)
		w.Handover = time.Second
		return w
	}
	one, two := worker(), worker()
	f.run(one)
	f.eventually(func() bool { return b.calls() == 2 })
	f.run(two)
	require.ErrorIs(t, <-lost, source.ErrLost)
	f.eventually(func() bool { return b.calls() == 3 })
	require.Equal(t, []bool{false, false, true}, []bool{<-repeated, <-repeated, <-repeated})
	require.Equal(t, int64(0), max(f.committed(0), 0)+max(f.committed(1), 0))
	close(release)
	f.eventually(func() bool { return f.committed(0) == 1 && f.committed(1) == 1 })
	require.Equal(t, 3, b.calls())
}

func TestDeferralEndsWhenThePreviousOwnerHasLeftTheGroup(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 1, keyless)
	f.put(1, 1, keyless)
	for name, leave := range map[string]func(one *worker, stop func()){
		"stop":   func(_ *worker, stop func()) { stop() },
		"settle": func(_ *worker, stop func()) { stop() },
		"kill":   func(one *worker, _ func()) { one.wires.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			f := &field{t: t, addrs: f.addrs, topic: f.topic, group: f.group + name, client: f.client, admin: f.admin}
			var b book
			grace := make(chan struct{}) // ends the calls of the first member
			end := sync.OnceFunc(func() { close(grace) })
			worker := func(handle handler) *worker {
				w := f.worker(handle)
				w.Handover = time.Hour
				return w
			}
			one := worker(func(_ context.Context, d source.Delivery) error {
				b.add(d)
				<-grace
				if name == "settle" {
					return nil
				}
				return context.Canceled
			})
			stop := f.run(one)
			defer end()
			f.eventually(func() bool { return b.calls() == 2 })
			two := worker(func(_ context.Context, d source.Delivery) error { b.add(d); return nil })
			f.run(two)
			f.eventually(func() bool { return two.owned() == 1 })
			if name != "kill" {
				end()
			}
			leave(one, stop)
			f.eventually(func() bool { return f.committed(0) == 1 && f.committed(1) == 1 })
			if name == "settle" {
				require.Equal(t, 2, b.calls())
			} else {
				require.Equal(t, 4, b.calls())
			}
		})
	}
}

func TestStopRepeatsOnlyWhatWasRunning(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 21, keyless)
	var b book
	grace := make(chan struct{}) // ends the grace period of the stop
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		b.add(d)
		if d.Record.Offset == 0 && b.times("0/0") == 1 {
			<-grace
			return context.Canceled
		}
		return nil
	})
	stop := f.run(w)
	f.eventually(func() bool { return b.calls() == 21 })
	time.AfterFunc(100*time.Millisecond, func() { close(grace) })
	stop()

	f.run(w)
	f.eventually(func() bool { return f.committed(0) == 21 })
	require.Equal(t, 2, b.times("0/0"))
	require.Equal(t, 22, b.calls())
}

func TestKillRepeatsOnlyWhatWasRunning(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 21, keyless)
	var b book
	var repeated sync.Map
	end := make(chan struct{})
	handle := func(_ context.Context, d source.Delivery) error {
		b.add(d)
		repeated.Store(d.Record.Offset, d.Repeated)
		if d.Record.Offset == 0 && b.times("0/0") == 1 {
			<-end
		}
		return nil
	}
	killed := f.worker(handle)
	stop := f.run(killed)
	f.eventually(func() bool { return b.calls() == 21 })
	require.Never(t, func() bool { return b.calls() > 21 }, 300*time.Millisecond, 50*time.Millisecond, "commits follow")
	killed.wires.cut()

	f.run(f.worker(handle))
	f.eventually(func() bool { return f.committed(0) == 21 })
	require.Equal(t, 2, b.times("0/0"))
	require.Equal(t, 22, b.calls())
	again, _ := repeated.Load(int64(0))
	require.Equal(t, true, again)
	close(end)
	stop()
}

func TestRecordsBesideALongCallDoNotWaitForIt(t *testing.T) {
	f := newField(t, 4)
	f.put(0, 1, keyless)
	release := make(chan struct{})
	var mu sync.Mutex
	waits := map[string]time.Duration{}
	handle := func(_ context.Context, d source.Delivery) error {
		if d.Record.Partition == 0 && d.Record.Offset == 0 {
			<-release
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		waits[string(d.Record.Value)] = time.Since(d.Record.Timestamp)
		return nil
	}
	worker := func() *worker {
		w := f.worker(handle)
		short := w.Client
		w.Client = func() *sarama.Config {
			conf := short()
			conf.Consumer.Group.Rebalance.Timeout = 16 * time.Second
			return conf
		}
		return w
	}
	f.run(worker())
	probe := 0
	probes := func(n int) {
		for range n {
			r := &kgo.Record{Topic: f.topic, Partition: int32(probe % 4), Value: fmt.Appendf(nil, "p%d", probe)}
			require.NoError(t, f.client.ProduceSync(t.Context(), r).FirstErr())
			probe++
			done := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() { close(done) })
			<-done
		}
	}
	probes(10)
	stop := f.run(worker())
	probes(30)
	stop()
	probes(20)
	f.eventually(func() bool { mu.Lock(); defer mu.Unlock(); return len(waits) == probe })
	close(release)
	for name, wait := range waits { // a record that waits for the call waits for the whole rebalance
		require.Less(t, wait, 8*time.Second, name)
	}
}
