//go:build kafka

package kafkatest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var fromStart = kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func create(ctx context.Context, t *testing.T, client *kgo.Client, topic string, partitions int32) {
	t.Helper()
	_, err := kadm.NewClient(client).CreateTopic(ctx, partitions, -1, nil, topic)
	require.NoError(t, err)
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr())
	}
}

// read reads the first committed records of a topic.
func read(ctx context.Context, t *testing.T, addrs []string, topic string, n int) []string {
	t.Helper()
	client := dial(t, addrs, kgo.ConsumeTopics(topic), fromStart, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer client.Close()
	return poll(ctx, t, client, n)
}

func poll(ctx context.Context, t *testing.T, client *kgo.Client, n int) []string {
	t.Helper()
	var got []string
	for len(got) < n {
		fetches := client.PollRecords(ctx, n-len(got))
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got
}
