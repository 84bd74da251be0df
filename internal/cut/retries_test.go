package cut

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitsDoubleUpToTheLongest(t *testing.T) {
	r := Retries{First: 100 * time.Millisecond, Longest: 15 * time.Second, Limit: 10}
	var waits, sum time.Duration
	for failed := 1; !r.isOver(failed); failed++ {
		sum += r.wait(failed)
		waits++
	}
	require.EqualValues(t, 9, waits)
	require.Equal(t, 40500*time.Millisecond, sum, "as documented at processors.WithHandlerAttempts")
	require.Equal(t, 15*time.Second, r.wait(1_000_000))
	require.False(t, (&Retries{Limit: -1}).isOver(1_000_000))
	require.True(t, (&Retries{Limit: 1}).isOver(1))
}

func TestAttemptsAreCountedPerRecord(t *testing.T) {
	a := NewAttempts()
	a.Set(in0, Attempt{Offset: 7}, 3)
	require.Equal(t, 3, a.Of(in0, Attempt{Offset: 7}))
	require.Zero(t, a.Of(in0, Attempt{Offset: 8}))
	require.Zero(t, a.Of(in0, Attempt{Offset: 7, Key: "k"}), "a deadline")
	require.Zero(t, a.Of(Partition{"in", 1}, Attempt{Offset: 7}))
	var none *Attempts
	require.Zero(t, none.Of(in0, Attempt{Offset: 7}))
}
