package consume_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/consume"
	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestSlowRecordDelaysOnlyItsCommit(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 50, keyless)
	var b book
	release := make(chan struct{})
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		if r.Offset == 7 {
			<-release
		}
		b.add(r)
		return nil
	})
	c.Concurrency = 2
	f.run(c)
	f.eventually(func() bool { return b.len() == 49 && f.committed(0) == 7 })
	close(release)
	f.eventually(func() bool { return f.committed(0) == 50 })
	require.Equal(t, 50, b.len())
	require.Equal(t, 1, b.times("0/7"))
}

func TestReadAheadIsBoundedByTheWindow(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 20, keyless)
	var b book
	release := make(chan struct{})
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		if r.Offset == 0 {
			<-release
		}
		b.add(r)
		return nil
	})
	c.MaxInFlightPerPartition = 5
	f.run(c)
	f.eventually(func() bool { return b.len() == 4 })
	require.Never(t, func() bool { return b.len() > 4 }, 200*time.Millisecond, 20*time.Millisecond)
	close(release)
	f.eventually(func() bool { return b.len() == 20 && f.committed(0) == 20 })
}

func TestConcurrencyIsBounded(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 20, keyless)
	f.put(1, 20, keyless)
	var b book
	var now, most atomic.Int32
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		b.add(r)
		now.Add(-1)
		return nil
	})
	c.Concurrency = 3
	f.run(c)
	f.eventually(func() bool { return b.len() == 40 })
	require.LessOrEqual(t, most.Load(), int32(3))
}

func TestFailureRestartsFromTheLastCommit(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 10, keyless)
	for name, fail := range map[string]func(){"error": nil, "panic": func() { panic("secret") }} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			var b book
			var failed atomic.Bool
			c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
				b.add(r)
				if string(r.Value) == "3" && failed.CompareAndSwap(false, true) {
					if fail != nil {
						fail()
					}
					return errTool
				}
				return nil
			})
			c.Group, c.Logger = group+name, zap.New(core)
			f.run(c)
			f.eventually(func() bool { return b.times("0/3") == 2 && b.len() == 10 })
			for i := range 3 {
				require.GreaterOrEqual(t, b.times(fmt.Sprintf("0/%d", i)), 1)
			}
			var why string
			for _, e := range logs.FilterMessage("consumer restarts").All() {
				why += fmt.Sprint(e.ContextMap())
			}
			require.Contains(t, why, "in/0 offset 3")
			require.NotContains(t, why, "secret")
		})
	}
}

func TestRecordsOfAKeyAreHandledInOrder(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 60, func(i int) []byte { return []byte{byte('a' + i%3)} })
	var b book
	var mu sync.Mutex
	busy := map[string]bool{}
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		mu.Lock()
		twice := busy[string(r.Key)]
		busy[string(r.Key)] = true
		mu.Unlock()
		if twice {
			return errTool
		}
		b.add(r)
		mu.Lock()
		busy[string(r.Key)] = false
		mu.Unlock()
		return nil
	})
	c.Ordered = true
	f.run(c)
	f.eventually(func() bool { return f.committed(0) == 60 })
	b.mu.Lock()
	defer b.mu.Unlock()
	last := map[int]int{0: -1, 1: -1, 2: -1}
	for _, name := range b.list {
		var i int
		_, err := fmt.Sscanf(name, "0/%d", &i)
		require.NoError(t, err)
		require.Greater(t, i, last[i%3])
		last[i%3] = i
	}
	require.Len(t, b.list, 60)
}

func TestSlowKeyDelaysOnlyItsOwnRecords(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 20, func(i int) []byte { return []byte{byte('a' + i%2)} })
	var b book
	release := make(chan struct{})
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		if r.Offset == 0 {
			<-release
		}
		b.add(r)
		return nil
	})
	c.Ordered, c.Concurrency = true, 2
	f.run(c)
	f.eventually(func() bool { return b.len() == 10 })
	close(release)
	f.eventually(func() bool { return f.committed(0) == 20 })
}

func TestRevocationWaitsForRunningHandlers(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 5, keyless)
	f.put(1, 5, keyless)
	var b book
	release := make(chan struct{})
	handle := func(_ context.Context, r *sarama.ConsumerMessage) error {
		if r.Offset == 2 {
			<-release
		}
		b.add(r)
		return nil
	}
	assigned := make(chan int, 10)
	one := f.config(handle)
	one.Assigned = func(n int) { assigned <- n }
	f.run(one)
	f.eventually(func() bool { return b.len() == 8 })
	require.Equal(t, 2, <-assigned)

	two := f.config(handle)
	two.Assigned = func(n int) { assigned <- n }
	f.run(two)
	require.Never(t, func() bool { return len(assigned) > 0 }, 300*time.Millisecond, 20*time.Millisecond)
	close(release)
	require.Equal(t, []int{1, 1}, []int{<-assigned, <-assigned})
	f.put(0, 10, keyless)
	f.put(1, 10, keyless)
	f.eventually(func() bool { return f.committed(0) == 15 && f.committed(1) == 15 })
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, times := range b.seen {
		var p, i int
		_, err := fmt.Sscanf(name, "%d/%d", &p, &i)
		require.NoError(t, err)
		want := 1
		if i < 5 {
			want = 2 // of both batches
		}
		require.Equal(t, want, times, name)
	}
}

func TestHandlerThatOutlivesTheDrainIsCancelledAndItsRecordIsRedelivered(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 3, keyless)
	var b book
	var cancelled atomic.Int32
	c := f.config(func(ctx context.Context, r *sarama.ConsumerMessage) error {
		b.add(r)
		if r.Offset == 1 {
			<-ctx.Done()
			cancelled.Add(1)
			return ctx.Err()
		}
		return nil
	})
	c.Drain = 50 * time.Millisecond
	stop := f.run(c)
	f.eventually(func() bool { return b.len() == 3 && f.committed(0) == 1 })
	stop()
	require.EqualValues(t, 1, cancelled.Load())
	require.EqualValues(t, 1, f.committed(0))

	c.Handle = func(_ context.Context, r *sarama.ConsumerMessage) error { b.add(r); return nil }
	f.run(c)
	f.eventually(func() bool { return f.committed(0) == 3 })
	require.Equal(t, 2, b.times("0/1"))
}

func TestHandlerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 2, keyless)
	release, returned := make(chan struct{}), make(chan struct{})
	var b book
	c := f.config(func(_ context.Context, r *sarama.ConsumerMessage) error {
		b.add(r)
		if r.Offset == 0 {
			<-release
			close(returned)
		}
		return nil
	})
	c.Drain = 10 * time.Millisecond
	stop := f.run(c)
	f.eventually(func() bool { return b.len() == 2 })
	stop()
	close(release)
	<-returned
	require.LessOrEqual(t, f.committed(0), int64(0))
}

func TestLongWorkCausesNoRebalance(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, keyless)
	var assigned atomic.Int32
	began, release := make(chan struct{}), make(chan struct{})
	c := f.config(func(context.Context, *sarama.ConsumerMessage) error {
		close(began)
		<-release
		return nil
	})
	const session = 5 * time.Second // longer than the pauses of a busy machine
	c.Sarama = func() *sarama.Config {
		conf := kafka.Config()
		conf.Consumer.Group.Session.Timeout = session
		conf.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
		conf.Consumer.MaxProcessingTime = 100 * time.Millisecond
		return conf
	}
	c.Assigned = func(int) { assigned.Add(1) }
	f.run(c)
	<-began
	require.Never(t, func() bool { return assigned.Load() > 1 }, session*3/2, 50*time.Millisecond)
	close(release)
	f.eventually(func() bool { return f.committed(0) == 1 })
}

func TestRecordsAreHandedOutUnchanged(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, func(int) []byte { return []byte("s-1") })
	got := make(chan *sarama.ConsumerMessage, 1)
	f.run(f.config(func(_ context.Context, r *sarama.ConsumerMessage) error { got <- r; return nil }))
	r := <-got
	require.Equal(t, "in/0/0 s-1=0", fmt.Sprintf("%s/%d/%d %s=%s", r.Topic, r.Partition, r.Offset, r.Key, r.Value))
	require.WithinDuration(t, time.Now(), r.Timestamp, waitLimit)
	require.Empty(t, r.Headers)
}

func TestMissingTopicIsRetriedUntilItExists(t *testing.T) {
	f := newField(t, 1)
	core, logs := observer.New(zap.WarnLevel)
	got := make(chan struct{})
	c := f.config(func(context.Context, *sarama.ConsumerMessage) error { close(got); return nil })
	c.Topics, c.Logger = []string{"later"}, zap.New(core)
	f.run(c)
	f.eventually(func() bool { return logs.FilterMessage("consumer restarts").Len() > 0 })
	_, err := f.admin.CreateTopics(t.Context(), 1, 1, nil, "later")
	require.NoError(t, err)
	require.NoError(t, f.client.ProduceSync(t.Context(), &kgo.Record{Topic: "later", Value: []byte("x")}).FirstErr())
	<-got
}

func TestInvalidConfigurationIsRejected(t *testing.T) {
	err := consume.Run(t.Context(), consume.Config{Topics: []string{""}, Drain: time.Minute, Concurrency: -1})
	require.ErrorIs(t, err, consume.ErrConfig)
	for _, what := range []string{"brokers", "group", "topics", "handler", "rebalance timeout", "negative"} {
		require.Contains(t, err.Error(), what)
	}
}
