package retry_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/retry"
)

func TestBoundDoublesUpToTheLongest(t *testing.T) {
	var got []time.Duration
	for n := range uint32(7) {
		got = append(got, retry.Bound(time.Second, 10*time.Second, n)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 1, 2, 4, 8, 10, 10}, got)
	require.Equal(t, time.Second, retry.Bound(time.Minute, time.Second, 1))
	require.Equal(t, time.Hour, retry.Bound(time.Second, time.Hour, 1<<31))
}

func TestJitterIsDerivedAndSpread(t *testing.T) {
	draw := func(i int) time.Duration { return retry.Jitter(time.Second, "test", "a", strconv.Itoa(i)) }
	low, sum := 0, time.Duration(0)
	for i := range 1000 {
		wait := draw(i)
		require.Equal(t, wait, draw(i))
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, time.Second)
		if sum += wait; wait < time.Second/4 {
			low++
		}
	}
	require.InDelta(t, 500*time.Second, sum, float64(50*time.Second))
	require.InDelta(t, 250, low, 60)
	require.NotEqual(t, draw(1), retry.Jitter(time.Second, "other", "a", "1"))
	require.Zero(t, retry.Jitter(0, "test", "a"))
}
