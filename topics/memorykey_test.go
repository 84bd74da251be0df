package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestCallersWithoutAUserDoNotShareAMemory(t *testing.T) {
	require.Equal(t, "mira", topics.MemoryKey("s1", new("mira")))
	for _, user := range []*string{nil, new(""), new("  "), new(topics.PlaceholderUser)} {
		require.Equal(t, "s1", topics.MemoryKey("s1", user))
	}
}
