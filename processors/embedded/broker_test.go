package embedded_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbroker.Main(m)) }

func TestBrokerServesTopicsAndGroups(t *testing.T) {
	broker, ctx := start(t, embedded.Config{})
	client := dial(t, broker, kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("letters"), resetToStart)
	create(ctx, t, client, "letters", nil)
	produce(ctx, t, client, "letters", "a", "b", "c")
	require.Equal(t, []string{"a", "b", "c"}, values(ctx, t, client, 3))
}

func TestTopicsHaveTheDefaultPartitions(t *testing.T) {
	broker, ctx := start(t, embedded.Config{Partitions: 4})
	client := dial(t, broker)
	create(ctx, t, client, "letters", nil)
	topics, err := kadm.NewClient(client).ListTopics(ctx, "letters")
	require.NoError(t, err)
	require.Len(t, topics["letters"].Partitions, 4)
}

func TestBrokerReopensItsDirectoryWithRecordsAndOffsets(t *testing.T) {
	directory := embedded.Config{Directory: t.TempDir()}
	const session = 2 * time.Minute
	group := []kgo.Opt{
		kgo.ConsumerGroup("readers"), kgo.SessionTimeout(session), kgo.InstanceID("reader-1"),
		kgo.ConsumeTopics("letters"), resetToStart, kgo.DisableAutoCommit(),
	}

	broker, ctx := start(t, directory)
	client := dial(t, broker, group...)
	create(ctx, t, client, "letters", nil)
	produce(ctx, t, client, "letters", "a", "b")
	require.Equal(t, []string{"a", "b"}, values(ctx, t, client, 2))
	require.NoError(t, client.CommitUncommittedOffsets(ctx))
	produce(ctx, t, client, "letters", "c")
	client.Close()
	require.NoError(t, broker.Close())

	broker, ctx = start(t, directory)
	client = dial(t, broker, group...)
	begin := time.Now()
	require.Equal(t, []string{"c"}, values(ctx, t, client, 1), "a static member goes on behind its commit")
	require.Less(t, time.Since(begin), session/4, "nor waits for its session to end")
}

func TestCompactedTopicKeepsTheLastOfAKey(t *testing.T) {
	broker, ctx := start(t, embedded.Config{})
	client := dial(t, broker)
	policy := "compact"
	create(ctx, t, client, "table", map[string]*string{"cleanup.policy": &policy})
	for i := range 20 {
		row := &kgo.Record{Topic: "table", Key: []byte("k"), Value: []byte(strconv.Itoa(i))}
		require.NoError(t, client.ProduceSync(ctx, row).FirstErr())
	}
	broker.Cluster().Compact()

	reader := dial(t, broker, kgo.ConsumeTopics("table"), resetToStart)
	var rows []string
	for len(rows) == 0 || rows[len(rows)-1] != "19" {
		rows = append(rows, values(ctx, t, reader, 1)...)
	}
	require.Less(t, len(rows), 20)
}

func TestDirectoryBelongsToOneBroker(t *testing.T) {
	dir := t.TempDir()
	broker, _ := start(t, embedded.Config{Directory: dir})

	_, err := embedded.Start(embedded.Config{Directory: dir})
	require.ErrorIs(t, err, embedded.ErrLocked)
	require.ErrorContains(t, err, dir)

	require.NoError(t, broker.Close())
	require.NoError(t, broker.Close(), "closing twice is closing once")
	again, err := embedded.Start(embedded.Config{Directory: dir})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestDirectoryThatCannotBeCreatedIsNamed(t *testing.T) {
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := embedded.Start(embedded.Config{Directory: file})
	require.ErrorContains(t, err, file)
}

var resetToStart = kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())

func start(t *testing.T, c embedded.Config) (*embedded.Broker, context.Context) {
	t.Helper()
	broker, err := embedded.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return broker, ctx
}

func dial(t *testing.T, broker *embedded.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker.Addrs()...))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func create(ctx context.Context, t *testing.T, client *kgo.Client, topic string, configs map[string]*string) {
	t.Helper()
	_, err := kadm.NewClient(client).CreateTopic(ctx, -1, -1, configs, topic)
	require.NoError(t, err)
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr())
	}
}

func values(ctx context.Context, t *testing.T, client *kgo.Client, n int) []string {
	t.Helper()
	var got []string
	for len(got) < n {
		fetches := client.PollRecords(ctx, n-len(got))
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got
}
