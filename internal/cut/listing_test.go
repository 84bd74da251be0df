package cut

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

func listing(inputs []string, ids map[string]string) *Listing {
	return NewListing(inputs, ids, 4, nil, nil, new(atomic.Bool), zap.NewNop())
}

func TestMetadataListsTheInputsAndTheTopic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`), 1, 40, rapid.ID[string]).Draw(t, "topics")
		n := rapid.IntRange(0, len(topics)).Draw(t, "inputs")
		m := listing(topics[:n], map[string]string{topics[0]: "1f"}).Metadata(Partition{Topic: topics[0]}, 7)
		l, ours := ParseListed(m + " later=field")
		require.True(t, ours)
		for i, topic := range topics {
			require.Equal(t, i < n, l.Has(topic), topic)
		}
		require.Equal(t, 4, l.Partitions())
		require.False(t, l.OfAnother("1f"))
		require.True(t, l.OfAnother("2f"))
		require.False(t, l.OfAnother(""), "the broker has no IDs")
	})
}

func TestMetadataFitsIntoTheDefaultLimitOfABroker(t *testing.T) {
	inputs := make([]string, 5000)
	for i := range inputs {
		inputs[i] = fmt.Sprint("topic-", i)
	}
	id := fmt.Sprintf("%032x", 1)
	m := listing(inputs, map[string]string{"topic-1": id}).Metadata(Partition{Topic: "topic-1"}, 7)
	require.LessOrEqual(t, len(m), 4096)
	l, _ := ParseListed(m)
	require.True(t, l.OfAnother("2"), "the topic is not cut off")
}

func TestMetadataOfOtherProgramsIsIgnored(t *testing.T) {
	for _, m := range []string{"", "AgAAAYxQ7rQb", "turntable/2 inputs=" + hashOf("in"), `{"turntable/1":"inputs"}`, "turntable/10"} {
		_, ours := ParseListed(m)
		require.False(t, ours, m)
	}
	l, ours := ParseListed("turntable/1")
	require.True(t, ours)
	require.False(t, l.Has("in"))
	require.False(t, l.OfAnother("1f"), "committed without an ID")
	require.Zero(t, l.Partitions())
	var none *Listing
	require.Empty(t, none.Metadata(in0, 7))
}

func TestMetadataHasTheAttemptsOfTheRecordAtTheOffset(t *testing.T) {
	attempts := NewAttempts()
	l := NewListing([]string{"in"}, nil, 4, nil, attempts, new(atomic.Bool), zap.NewNop())
	attempts.Set(in0, Attempt{Offset: 7}, 3)
	read := func(m string) int {
		listed, ours := ParseListed(m)
		require.True(t, ours)
		require.True(t, l.Current("in", m), "the attempts are no reason to commit it again")
		return listed.Attempts()
	}
	require.Equal(t, 3, read(l.Metadata(in0, 7)))
	require.Zero(t, read(l.Metadata(in0, 8)))
	require.Zero(t, read(l.Metadata(Partition{"in", 1}, 7)))
}

func TestMetadataOfACopyHasItsTopicAndPartitions(t *testing.T) {
	was := NewListing([]string{"in"}, map[string]string{"in": "1f"}, 4, nil, nil, new(atomic.Bool), zap.NewNop()).Metadata(in0, 7)
	l, ours := ParseListed(Relisted(was+" epoch=3 attempts=2", "2f", 6))
	require.True(t, ours)
	require.True(t, l.Has("in"))
	require.Equal(t, 6, l.Partitions())
	require.True(t, l.OfAnother("1f"))
	require.False(t, l.OfAnother("2f"))
	require.Zero(t, l.Attempts())
	_, known := l.Epoch()
	require.False(t, known)
	require.Equal(t, was, Relisted(was, "1f", 0), "the partitions are the same")
	require.Empty(t, Relisted("turntable.worker.1:AAAA", "2f", 6))
}
