package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/turntable-streams/turntable/internal/instance"
)

// An unclean leader election cuts off records that the group has read, and the new leader takes others. The group reads
// on where the new leader began: it neither skips what the new leader has nor repeats the whole topic.
func TestGroupContinuesWhereTheNewLeaderOfATruncatedLogBegan(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(1, "in", "out"))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		brokers := c.ListenAddrs()
		admin := kadm.NewClient(dial(t, brokers))
		cfg := instance.Config{
			Brokers: brokers, Graph: forwarding("in"), InstanceID: "i", Sarama: lively, Guarantee: guarantee,
		}
		inst := run(t, cfg)
		put(t, brokers, keyed("in", "k", "1"), keyed("in", "k", "2"), keyed("in", "k", "3"))
		take(t, brokers, "out", 3)
		inst.stop()
		require.NoError(t, inst.wait(t))

		// As if three more had been read, which the new leader does not have. It has two others.
		offsets, err := admin.FetchOffsets(t.Context(), "g")
		require.NoError(t, err)
		o, ok := offsets.Lookup("in", 0)
		require.True(t, ok)
		require.EqualValues(t, 3, o.At)
		require.Contains(t, o.Metadata, " epoch=")
		o.At += 3
		var ahead kadm.Offsets
		ahead.Add(o.Offset)
		require.NoError(t, admin.CommitAllOffsets(t.Context(), "g", ahead))
		require.NoError(t, c.MoveTopicPartition("in", 0, 1-c.LeaderFor("in", 0)))
		put(t, brokers, keyed("in", "k", "4'"), keyed("in", "k", "5'"))

		inst = run(t, cfg)
		require.Equal(t, []string{"1", "2", "3", "4'", "5'"}, values(take(t, brokers, "out", 5)))
		put(t, brokers, keyed("in", "k", "6'"))
		require.Equal(t, []string{"1", "2", "3", "4'", "5'", "6'"}, values(take(t, brokers, "out", 6)))
		inst.stop()
		require.NoError(t, inst.wait(t))
		require.EqualValues(t, 6, committedAt(t, admin, "g", "in", 0))
	})
}

// Without the epoch, or in a topic that was recreated, nothing tells where the group must read on: everything is read.
func TestGroupReadsEverythingWhereTheEndOfItsEpochIsNotKnown(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		_, brokers := oneEach(t, "in", "out")
		admin := kadm.NewClient(dial(t, brokers))
		put(t, brokers, keyed("in", "k", "1"), keyed("in", "k", "2"))
		var ahead kadm.Offsets
		ahead.Add(kadm.Offset{Topic: "in", At: 5, LeaderEpoch: -1})
		require.NoError(t, admin.CommitAllOffsets(t.Context(), "g", ahead))
		run(t, instance.Config{
			Brokers: brokers, Graph: forwarding("in"), InstanceID: "i", Sarama: lively, Guarantee: guarantee,
		})
		require.Equal(t, []string{"1", "2"}, values(take(t, brokers, "out", 2)))
	})
}
