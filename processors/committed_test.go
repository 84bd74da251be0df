package processors_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/processors"
)

func TestFollowerKnowsTheOffsetsOfAGroup(t *testing.T) {
	f := newField(t, 2)
	unstarted, err := processors.NewFollower(f.addrs, []string{"answers"}, func(processors.Inbound) {})
	require.NoError(t, err)
	_, err = unstarted.Committed("g", "answers")
	require.ErrorIs(t, err, processors.ErrNotFollowing)

	follower, _ := follow(t, f)
	none, err := follower.Committed("g", "answers", "other")
	require.NoError(t, err)
	require.Empty(t, none["answers"])
	p := newPublisher(t, f.addrs)
	publish(t, p, "s", "a", "b", "c")
	partition, err := follower.Partition("answers", "s")
	require.NoError(t, err)
	commit := func(offset int64, metadata string) {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: "answers", Partition: partition, At: offset, LeaderEpoch: -1, Metadata: metadata})
		require.NoError(t, kadm.NewClient(f.client).CommitAllOffsets(t.Context(), "g", offsets))
	}
	for _, c := range []struct {
		offset   int64
		metadata string
		counts   bool
	}{
		{2, "", true},
		{3, "turntable/1 inputs=abcdef", true},
		{4, "", false}, // after the end: of an earlier topic
		{2, "turntable/1 inputs=abcdef topic=00000000000000000000000000000001", false},
	} {
		commit(c.offset, c.metadata)
		committed, err := follower.Committed("g", "answers")
		require.NoError(t, err)
		offset, ok := committed.Of("answers", partition)
		require.Equal(t, c.counts, ok, c)
		if ok {
			require.Equal(t, c.offset, offset)
		}
		_, ok = committed.Of("answers", 1-partition)
		require.False(t, ok)
	}
}
