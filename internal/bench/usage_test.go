//go:build linux

package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsageOfAProcessGrowsWithItsWork(t *testing.T) {
	before, err := usageOf(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, before.resident)
	require.GreaterOrEqual(t, before.peak, before.resident)
	require.Eventually(t, func() bool {
		for range 1_000_000 {
			_ = time.Duration(1).Seconds()
		}
		after, err := usageOf(os.Getpid())
		return err == nil && after.cpu > before.cpu
	}, 20*time.Second, time.Millisecond)
	_, err = usageOf(1 << 30)
	require.Error(t, err)
	_, ok := usageOfAll([]*process{{pid: 1 << 30}})
	require.False(t, ok)
}
