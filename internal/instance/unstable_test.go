package instance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// undecided leaves an offset of a group in a transaction that is not ended before its timeout.
func undecided(t testing.TB, brokers []string, id, group, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	c := dial(t, brokers, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute),
		kgo.MaxVersions(kversion.V3_8_0())) // newer ones name topics by id
	require.NoError(t, c.BeginTransaction())
	producer, epoch, err := c.ProducerID(ctx)
	require.NoError(t, err)

	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = id, producer, epoch, group
	added, err := add.RequestWith(ctx, c)
	require.NoError(t, err)
	require.Zero(t, added.ErrorCode)

	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = id, producer, epoch, group
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = 1
	of := kmsg.NewTxnOffsetCommitRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, partition)
	commit.Topics = append(commit.Topics, of)
	committed, err := commit.RequestWith(ctx, c)
	require.NoError(t, err)
	require.Zero(t, committed.Topics[0].Partitions[0].ErrorCode)
}

// No member can start from offsets in a dead owner's open transaction. A member aborts such a transaction of its own group,
// but not that of another group.
func TestTransactionOfADeadOwnerOnOffsetsIsAborted(t *testing.T) {
	t.Parallel()
	for id, taken := range map[string]bool{"g/dead": true, "another/one": false} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			_, brokers := cluster(t, "in", "out")
			put(t, brokers, keyed("in", "k", "x"))
			undecided(t, brokers, id, "g", "in")
			policy := cut.ExactlyOncePolicy()
			policy.Drain = 300 * time.Millisecond
			inst := run(t, instance.Config{
				Brokers: brokers, Graph: counting("g"), InstanceID: "i1", Guarantee: instance.ExactlyOnce, Policy: policy,
			})
			if !taken {
				require.Never(t, inst.recovered, 2*time.Second, 10*time.Millisecond)
				return
			}
			require.Equal(t, []string{"1"}, values(take(t, brokers, "out", 1)), "the dead one's offset is not committed")
		})
	}
}
