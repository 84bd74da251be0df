package instance_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// testTimeout bounds every wait of these tests. Only failing tests reach it, even on a busy machine.
const testTimeout = time.Minute

// dial is a client of another make: what these tests see of a broker is not seen through the library they test.
func dial(t testing.TB, brokers []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(brokers...), kgo.FetchMaxWait(100*time.Millisecond))...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func keyed(topic, key, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
}

// underBoth runs a test under each guarantee, side by side.
func underBoth(t *testing.T, test func(t *testing.T, guarantee instance.Guarantee)) {
	for name, guarantee := range map[string]instance.Guarantee{"at least once": instance.AtLeastOnce, "exactly once": instance.ExactlyOnce} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, guarantee)
		})
	}
}

// put writes records one by one. A broker may not know the ID of a topic that was recreated yet; nothing is written then.
func put(t testing.TB, brokers []string, records ...*kgo.Record) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	defer c.Close()
	for _, r := range records {
		var err error
		eventually(t, func() bool {
			err = c.ProduceSync(t.Context(), r).FirstErr()
			if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) { // it was created just now
				c.PurgeTopicsFromClient(r.Topic)
				return false
			}
			return true
		})
		require.NoError(t, err)
	}
}

// take reads committed records of a topic from its start until there are want of them, or more.
func take(t testing.TB, brokers []string, topic string, want int) []*kgo.Record {
	t.Helper()
	got := takeIn(t, brokers, topic, want, testTimeout)
	require.GreaterOrEqual(t, len(got), want, topic)
	return got
}

// takeIn is take that ends when the time is over, with what has come by then: all that was there when it began is in it,
// however slowly it comes.
func takeIn(t testing.TB, brokers []string, topic string, want int, within time.Duration) []*kgo.Record {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(50*time.Millisecond), kgo.KeepControlRecords())
	require.NoError(t, err)
	defer c.Close()
	over, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	late, cancel := context.WithTimeout(t.Context(), max(within, testTimeout))
	defer cancel()
	there, err := kadm.NewClient(c).ListCommittedOffsets(late, topic)
	require.NoError(t, err)
	for p, end := range there[topic] {
		if end.Offset == 0 {
			delete(there[topic], p)
		}
	}
	var got []*kgo.Record
	for len(got) < want {
		ctx := over
		if len(there[topic]) > 0 {
			ctx = late
		}
		if ctx.Err() != nil {
			break
		}
		for _, r := range c.PollFetches(ctx).Records() {
			if end, open := there.Lookup(topic, r.Partition); open && r.Offset+1 >= end.Offset {
				delete(there[topic], r.Partition)
			}
			if !r.Attrs.IsControl() {
				got = append(got, r)
			}
		}
	}
	return got
}

func values(records []*kgo.Record) []string {
	vs := make([]string, len(records))
	for i, r := range records {
		vs[i] = string(r.Value)
	}
	return vs
}

// committedAt is a group's committed offset of a partition, -1 where there is none.
func committedAt(t testing.TB, admin *kadm.Client, group, topic string, partition int32) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	offsets, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return -1
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

func eventually(t testing.TB, f func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, f, testTimeout, 5*time.Millisecond, what...)
}

// lively is our configuration with heartbeats that let a member see a rebalance soon.
func lively() *sarama.Config {
	c := kafka.Config()
	c.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	return c
}

func livelyStock(c *sarama.Config) {
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
}

// commits are the offsets that were asked to be committed, by generation, topic and partition: the highest of each.
type commits struct {
	mu   sync.Mutex
	high map[int32]map[string]map[int32]int64
}

func watchCommits(c *kfake.Cluster) *commits {
	w := &commits{high: map[int32]map[string]map[int32]int64{}}
	c.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		w.note(r.(*kmsg.OffsetCommitRequest))
		return nil, nil, false
	})
	return w
}

func (w *commits) note(r *kmsg.OffsetCommitRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			if w.high[r.Generation] == nil {
				w.high[r.Generation] = map[string]map[int32]int64{}
			}
			if w.high[r.Generation][topic.Topic] == nil {
				w.high[r.Generation][topic.Topic] = map[int32]int64{}
			}
			at := w.high[r.Generation][topic.Topic]
			at[p.Partition] = max(at[p.Partition], p.Offset)
		}
	}
}

func (w *commits) of(generation int32, topic string, partition int32) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.high[generation][topic][partition]
}

// restarts keeps an instance that has failed from starting again until the test has had its look.
type restarts struct {
	t      testing.TB
	failed chan error
	again  chan struct{}
}

func newRestarts(t testing.TB) *restarts {
	return &restarts{t: t, failed: make(chan error, 10_000), again: make(chan struct{})}
}

func (r *restarts) hook(err error, _ time.Duration) {
	r.failed <- err
	select {
	case <-r.again:
	case <-r.t.Context().Done():
	}
}

// goOn lets the instance start again, once.
func (r *restarts) goOn() {
	r.t.Helper()
	select {
	case r.again <- struct{}{}:
	case <-time.After(testTimeout):
		require.FailNow(r.t, "the instance is not down")
	}
}

// receive reads from a channel within testTimeout.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(testTimeout):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}
