package topics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestTimestampHasMillisecondsUnlessTheyAreZero(t *testing.T) {
	noon := time.UnixMilli(1_790_000_000_120).In(time.FixedZone("", 3600))
	require.Equal(t, "2026-09-21T14:13:20.120Z", topics.Timestamp(noon))
	require.Equal(t, "2026-09-21T14:13:20.120Z", topics.Timestamp(noon.Add(999*time.Microsecond)))
	require.Equal(t, "2026-09-21T14:13:20Z", topics.Timestamp(noon.Truncate(time.Second)))
}
