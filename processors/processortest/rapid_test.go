package processortest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/processortest"
)

// A property test may run one driver per case, because *rapid.T implements TB.
func TestRedeliveredAdditionCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := processortest.New(t, start, tallyGraph())
		in := processortest.In(d, additions)
		want := 0
		var offsets []int64
		for _, by := range rapid.SliceOfN(rapid.IntRange(1, 9), 1, 6).Draw(t, "additions") {
			offsets = append(offsets, in.Pipe("a", addition{By: by}))
			want += by
			in.PipeAt(rapid.SampledFrom(offsets).Draw(t, "again"))
		}
		require.NoError(t, d.Replay())
		got := processortest.Out(d, counts).Drain()
		require.Len(t, got, len(offsets))
		require.Equal(t, want, got[len(got)-1].Value.N)
	})
}
