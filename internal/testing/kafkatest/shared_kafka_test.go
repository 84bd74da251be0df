//go:build kafka

package kafkatest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

func TestSharedBrokerStoresRecords(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	addrs, topic := kafkatest.Shared(t), unique("shared")
	require.Equal(t, addrs, kafkatest.Shared(t), "it is one broker")

	client := dial(t, addrs)
	create(ctx, t, client, topic, 1)
	produce(ctx, t, client, topic, "a")
	require.Equal(t, []string{"a"}, read(ctx, t, addrs, topic, 1))
}

func TestExternalClusterIsUsedUnchanged(t *testing.T) {
	addrs := kafkatest.Shared(t)
	found, err := kafkatest.Reach(" "+strings.Join(addrs, " , "), time.Minute)
	require.NoError(t, err)
	require.Equal(t, addrs, found)
}

func TestTransactionalRecordsAreReadAfterTheCommit(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	addrs, topic := kafkatest.Shared(t), unique("transactions")
	client := dial(t, addrs, kgo.TransactionalID(topic))
	create(ctx, t, client, topic, 1)
	for _, tx := range []struct {
		value string
		end   kgo.TransactionEndTry
	}{{"a", kgo.TryCommit}, {"b", kgo.TryAbort}, {"c", kgo.TryCommit}} {
		require.NoError(t, client.BeginTransaction())
		produce(ctx, t, client, topic, tx.value)
		require.NoError(t, client.EndTransaction(ctx, tx.end))
	}
	require.Equal(t, []string{"a", "c"}, read(ctx, t, addrs, topic, 2))
}

func TestGroupWithAShortSessionFormsImmediately(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	addrs, topic := kafkatest.Shared(t), unique("groups")
	client := dial(t, addrs)
	create(ctx, t, client, topic, 1)
	produce(ctx, t, client, topic, "a", "b")
	for range 2 {
		member := dial(t, addrs, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), fromStart,
			kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(300*time.Millisecond), kgo.DisableAutoCommit())
		begin := time.Now()
		require.Equal(t, []string{"a", "b"}, poll(ctx, t, member, 2))
		t.Log("first records after", time.Since(begin))
		member.Close()
	}
}

// unique is a name that no earlier run has used: the cluster may be one that outlives this binary.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, time.Now().UnixNano()) }
