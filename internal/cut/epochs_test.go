package cut

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A new leader epoch is not taken for the one that records were read under before the consumer must have noticed it.
func TestNewLeaderEpochCountsOnceItWasSeenForAWhile(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now, seen, known := start, int32(3), true
	e := NewEpochs(func(Partition) (int32, bool) { return seen, known }, time.Minute, func() time.Time { return now })
	_, ok := e.Of(in0)
	require.False(t, ok, "nothing was read")
	e.Begin(in0)
	for _, step := range []struct {
		at   time.Duration
		seen int32
		gone bool
		want int32
	}{
		{at: 0, seen: 3, want: 3},
		{at: time.Second, seen: 4, want: 3},
		{at: 50 * time.Second, seen: 4, want: 3},
		{at: 55 * time.Second, seen: 5, want: 3}, // the wait begins again
		{at: 70 * time.Second, seen: 5, want: 3},
		{at: 80 * time.Second, gone: true, want: 3}, // between two leaders
		{at: 90 * time.Second, seen: 2, want: 3},    // a broker that is behind
		{at: 114 * time.Second, seen: 5, want: 3},
		{at: 115 * time.Second, seen: 5, want: 5},
		{at: 116 * time.Second, seen: 6, want: 5},
	} {
		now, seen, known = start.Add(step.at), step.seen, !step.gone
		got, ok := e.Of(in0)
		require.True(t, ok)
		require.Equal(t, step.want, got, "after %s", step.at)
	}
	e.Begin(in0)
	got, _ := e.Of(in0)
	require.EqualValues(t, 6, got, "a claim that begins reads under the epoch of now")
	known = false
	e.Begin(in0)
	_, ok = e.Of(in0)
	require.False(t, ok)
	var none *Epochs
	none.Begin(in0)
	_, ok = none.Of(in0)
	require.False(t, ok)
}
