package whole

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/topics"
)

// all reads the committed records of a topic up to its current end.
func (w *world) all(topic string) []*kgo.Record {
	w.t.Helper()
	t, ctx, brokers := w.t, w.ctx, w.brokers
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	reader, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(t, err)
	defer reader.Close()
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	var got []*kgo.Record
	for left > 0 {
		fetches := reader.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "reading %s", topic)
		fetches.EachRecord(func(r *kgo.Record) {
			end, _ := ends.Lookup(r.Topic, r.Partition)
			if r.Offset < end.Offset && !r.Attrs.IsControl() {
				got = append(got, r)
			}
			if r.Offset == end.Offset-1 {
				left--
			}
		})
	}
	return got
}

// valuesOf reads the values of a topic up to its current end.
func valuesOf[T any](w *world, t topics.Topic[T]) (list []T) {
	w.t.Helper()
	for _, r := range w.all(t.Name()) {
		if r.Value == nil {
			continue
		}
		v := t.Codec().Unmarshal(r.Value)
		require.NoError(w.t, v.Err)
		list = append(list, v.Value)
	}
	return list
}

func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// turnsHaveRead waits until the agent's turns have read a topic up to its current end.
func (w *world) turnsHaveRead(topic string) {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...))
	require.NoError(w.t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(w.ctx, topic)
	require.NoError(w.t, err)
	require.EventuallyWithT(w.t, func(c *assert.CollectT) {
		read, err := admin.FetchOffsets(w.ctx, string(w.catalog.Group()))
		require.NoError(c, err)
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := read.Lookup(topic, end.Partition)
			require.GreaterOrEqual(c, at.At, end.Offset)
		})
	}, waitLimit, tick)
}
