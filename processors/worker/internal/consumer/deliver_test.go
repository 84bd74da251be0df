package consumer_test

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

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

func TestSlowRecordDelaysOnlyItsCommit(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 50, keyless)
	var b book
	release := make(chan struct{})
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		if d.Record.Offset == 7 {
			<-release
		}
		b.add(d)
		return nil
	})
	w.Concurrency = 2
	f.run(w)
	f.eventually(func() bool { return b.len() == 49 && f.committed(0) == 7 })
	close(release)
	f.eventually(func() bool { return f.committed(0) == 50 })
	require.Equal(t, 50, b.calls())
}

func TestReadAheadIsBoundedByTheWindow(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 20, keyless)
	var b book
	release := make(chan struct{})
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		if d.Record.Offset == 0 {
			<-release
		}
		b.add(d)
		return nil
	})
	w.ReadAhead = 5
	f.run(w)
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
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		b.add(d)
		now.Add(-1)
		return nil
	})
	w.Concurrency = 3
	f.run(w)
	f.eventually(func() bool { return b.len() == 40 })
	require.LessOrEqual(t, most.Load(), int32(3))
}

func TestPartitionsShareTheSlots(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 200, keyless)
	f.put(1, 20, keyless)
	var b book
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		b.add(d)
		done := make(chan struct{})
		time.AfterFunc(5*time.Millisecond, func() { close(done) })
		<-done
		return nil
	})
	w.Concurrency = 2
	f.run(w)
	f.eventually(func() bool { return b.len() == 220 })
	b.mu.Lock()
	defer b.mu.Unlock()
	last := 0
	for i, name := range b.list {
		if name[0] == '1' {
			last = i
		}
	}
	require.Less(t, last, 150, "a backlog of one partition does not hold up another")
}

func TestRecordsOfAKeyAreHandledInOrder(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 60, func(i int) []byte { return []byte{byte('a' + i%3)} })
	var b book
	var mu sync.Mutex
	busy, failed := map[string]bool{}, map[int64]bool{}
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		key := string(d.Record.Key)
		mu.Lock()
		require.False(t, busy[key], "two records of key %s at a time", key)
		busy[key] = true
		fail := d.Record.Offset%20 == 7 && !failed[d.Record.Offset]
		failed[d.Record.Offset] = true
		mu.Unlock()
		if !fail {
			b.add(d)
		}
		mu.Lock()
		defer mu.Unlock()
		busy[key] = false
		if fail {
			return errTool // the key waits for this record
		}
		return nil
	})
	w.Ordered = true
	f.run(w)
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
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		if d.Record.Offset == 0 {
			<-release
		}
		b.add(d)
		return nil
	})
	w.Ordered, w.Concurrency = true, 2
	f.run(w)
	f.eventually(func() bool { return b.len() == 10 })
	close(release)
	f.eventually(func() bool { return f.committed(0) == 20 })
}

func TestReleasedRecordIsDeliveredAgainWithoutARebalance(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 10, keyless)
	var b book
	deliveries := make(chan source.Delivery, 10)
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		b.add(d)
		if d.Record.Offset != 3 {
			return nil
		}
		deliveries <- d
		if n := b.times("0/3"); n < 4 {
			d.Failed(n)
			return errTool
		}
		return nil
	})
	f.run(w)
	f.eventually(func() bool { return b.calls() > 0 })
	generation := w.source.Generation()
	f.eventually(func() bool { return f.committed(0) == 10 })
	require.Equal(t, 13, b.calls())
	for i := range 4 {
		d := <-deliveries
		require.Equal(t, []any{i + 1, i, i > 0, -1}, []any{d.Count, d.Attempts, d.Repeated, d.Remaining})
	}
	require.Equal(t, generation, w.source.Generation(), "no member left the group")
}

func TestAttemptsSurviveARestartAndAKill(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, keyless)
	deliveries := make(chan source.Delivery, 10)
	end := make(chan struct{})
	handle := func(_ context.Context, d source.Delivery) error {
		deliveries <- d
		switch d.Attempts {
		case 0:
			d.Failed(1)
			return errTool
		case 1:
			d.Failed(2)
			<-end // until its process is killed
		}
		return nil
	}
	one := f.worker(handle)
	stop := f.run(one)
	require.Equal(t, 0, (<-deliveries).Attempts)
	require.Equal(t, 1, (<-deliveries).Attempts)
	f.eventually(func() bool {
		open := f.checkpoint(0).Open
		return len(open) == 1 && open[0].Attempts == 3
	})
	one.wires.cut()
	f.run(f.worker(handle))
	d := <-deliveries
	require.Equal(t, []any{3, true}, []any{d.Attempts, d.Repeated}, "two failures, and a call that ended with its process")
	f.eventually(func() bool { return f.committed(0) == 1 })
	close(end)
	stop()
}

func TestCommitsFollowWithinMilliseconds(t *testing.T) {
	f := newField(t, 4)
	var b book
	w := f.worker(func(_ context.Context, d source.Delivery) error { b.add(d); return nil })
	f.run(w)
	f.eventually(func() bool { return w.owned() == 4 })
	f.put(0, 1, keyless)
	f.eventually(func() bool { return f.committed(0) == 1 })
	before := w.source.Commits()
	began := time.Now()
	for p := range int32(4) {
		f.put(p, 200, keyless)
	}
	f.eventually(func() bool { return b.calls() == 801 && f.committed(0) == 201 && f.committed(3) == 200 })
	rate := float64(w.source.Commits()-before) / time.Since(began).Seconds()
	t.Logf("%d commits in %s: %.1f per second for %.0f records per second", w.source.Commits()-before, time.Since(began), rate,
		800/time.Since(began).Seconds())
	require.LessOrEqual(t, rate, 25.0)

	began = time.Now()
	f.put(1, 1, keyless)
	f.eventually(func() bool { return f.committed(1) == 201 })
	t.Logf("an idle member commits after %s", time.Since(began))
	idle := w.source.Commits()
	require.Never(t, func() bool { return w.source.Commits() > idle+1 }, 2*time.Second, 100*time.Millisecond, "idle")
}

func TestLongWorkCausesNoRebalance(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, keyless)
	began, release := make(chan struct{}), make(chan struct{})
	w := f.worker(func(context.Context, source.Delivery) error {
		close(began)
		<-release
		return nil
	})
	short := w.Client
	w.Client = func() *sarama.Config {
		conf := short()
		conf.Consumer.MaxProcessingTime = 100 * time.Millisecond
		return conf
	}
	f.run(w)
	<-began
	generation := w.source.Generation()
	require.Never(t, func() bool { return w.source.Generation() != generation }, session*3/2, 250*time.Millisecond)
	close(release)
	f.eventually(func() bool { return f.committed(0) == 1 })
}

func TestRecordsAreHandedOutUnchanged(t *testing.T) {
	f := newField(t, 1)
	sent := &kgo.Record{
		Topic: f.topic, Key: []byte("s-1"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}},
	}
	require.NoError(t, f.client.ProduceSync(t.Context(), sent).FirstErr())
	got := make(chan source.Delivery, 1)
	f.run(f.worker(func(_ context.Context, d source.Delivery) error { got <- d; return nil }))
	d := <-got
	r := d.Record
	require.Equal(t, f.topic+"/0/0 s-1=v", fmt.Sprintf("%s/%d/%d %s=%s", r.Topic, r.Partition, r.Offset, r.Key, r.Value))
	require.WithinDuration(t, time.Now(), r.Timestamp, waitLimit)
	require.Equal(t, "x", string(r.Header("h")))
	require.Nil(t, r.Header("g"))
	require.Equal(t, []any{1, 0, false, -1}, []any{d.Count, d.Attempts, d.Repeated, d.Remaining})
}

func TestMissingTopicIsRetriedUntilItExists(t *testing.T) {
	f := newField(t, 1)
	got := make(chan struct{})
	w := f.worker(func(context.Context, source.Delivery) error { close(got); return nil })
	later := f.topic + "-later"
	w.Topics = []string{later}
	f.run(w)
	f.eventually(func() bool { return w.source.Status().Err != nil })
	require.False(t, w.source.Status().Joined)
	_, err := f.admin.CreateTopics(t.Context(), 1, 1, nil, later)
	require.NoError(t, err)
	require.NoError(t, f.client.ProduceSync(t.Context(), &kgo.Record{Topic: later, Value: []byte("x")}).FirstErr())
	<-got
	require.True(t, w.source.Status().Joined)
}

func TestInvalidConfigurationIsRejected(t *testing.T) {
	f := newField(t, 1)
	w := f.worker(nil)
	valid := w.Client
	w.Client = func() *sarama.Config {
		conf := valid()
		conf.ClientID = "not valid!"
		conf.Version = sarama.V0_8_2_0
		return conf
	}
	require.ErrorIs(t, consumer.New(w.Config).Run(t.Context(), nil), consumer.ErrConfig)
}
