package topics_test

import (
	"strings"
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

func TestUsersCannotNameTheMemoryOfSeveralUsers(t *testing.T) {
	for _, session := range []string{"s1", "mira", strings.Repeat("s", 1024)} {
		shared := topics.SharedMemoryKey(session)
		require.LessOrEqual(t, len(shared), 1024)
		require.NotEqual(t, session, shared)
		require.Equal(t, "s2", topics.MemoryKey("s2", &shared))
	}
	require.NotEqual(t, topics.SharedMemoryKey(strings.Repeat("s", 1024)), topics.SharedMemoryKey(strings.Repeat("t", 1024)))
}
