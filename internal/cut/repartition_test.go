package cut

import (
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func numbered(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// Every partition of a repartitioned input has one reader, whatever its number, and the copartitioned inputs are assigned as
// without it. With equal numbers the whole assignment is Goka's, so that earlier versions can be members.
func TestRepartitionedInputsAreAssignedBesideTheCopartitionedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		together := rapid.IntRange(1, 8).Draw(t, "partitions")
		loose := rapid.IntRange(1, 12).Draw(t, "loose partitions")
		members := map[string]sarama.ConsumerGroupMemberMetadata{}
		for i := range rapid.IntRange(1, 10).Draw(t, "members") {
			members[string(rune('a'+i))] = sarama.ConsumerGroupMemberMetadata{Topics: []string{"one", "two", "loose"}}
		}
		strategy := Repartitioned{"loose": func(*sarama.ConsumerMessage) Outgoing { return Outgoing{} }}.
			Assignor(goka.CopartitioningStrategy)
		require.Equal(t, goka.CopartitioningStrategy.Name(), strategy.Name())
		plan, err := strategy.Plan(members, map[string][]int32{
			"one": numbered(together), "two": numbered(together), "loose": numbered(loose),
		})
		require.NoError(t, err)
		var read []int32
		for _, topics := range plan {
			read = append(read, topics["loose"]...)
			require.Equal(t, topics["one"], topics["two"])
			if loose == together {
				require.ElementsMatch(t, topics["one"], topics["loose"])
			}
		}
		slices.Sort(read)
		require.Equal(t, numbered(loose), read)
		for _, m := range members {
			require.Equal(t, []string{"one", "two", "loose"}, m.Topics, "the members' metadata is not changed")
		}
	})
}
