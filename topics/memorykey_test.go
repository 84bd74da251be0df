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

// A caller without a user who may choose the ID of a session must not read what several users said in another one.
func TestSessionsCannotNameTheMemoryOfAnotherSession(t *testing.T) {
	keys := map[string]string{}
	for _, session := range []string{"s1", "session/s1", "anonymous/session/s1", "anonymous/s1", strings.Repeat("s", 1024), "session/" + strings.Repeat("s", 1000)} {
		for kind, key := range map[string]string{"own": topics.MemoryKey(session, nil), "shared": topics.SharedMemoryKey(session)} {
			require.LessOrEqual(t, len(key), 1024)
			require.NotContains(t, keys, key)
			keys[key] = kind
		}
	}
	require.Equal(t, "s1", topics.MemoryKey("s1", new("anonymous/session/s1")))
}
