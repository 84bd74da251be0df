package turn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The records of a session that ends are on their topics, under their keys. The group reads its own tombstone and ignores it.
func TestSessionEndsThroughItsTopics(t *testing.T) {
	b := start(t, turn.Config{Memoir: &turn.Memoir{After: time.Minute}})
	lookups := processortest.Out(b.Driver, b.topics.MemoirLookups)
	ends := processortest.Out(b.Driver, b.topics.SessionEnd)
	sessions := processortest.Out(b.Driver, b.topics.MemoirSessions)
	conversations := processortest.OutRaw(b.Driver, string(b.topics.ThinkRequestResponse.Stream()))
	m := say("s1", "one")
	m.UserID = new("mira")
	b.messages.Pipe("s1", m)
	asked := lookups.Next()
	require.Equal(t, "mira", asked.Key)
	require.NotEmpty(t, asked.Headers[topics.HeaderDeadline])
	require.Empty(t, b.enriched.Drain())
	b.responses.Pipe("s1", saying(asked.Value, "hello"))
	b.answers.Next()
	conversations.Drain()

	b.Advance(time.Minute)
	require.Equal(t, "s1", ends.Next().Key)
	snapshot := sessions.Next()
	require.Equal(t, "mira", snapshot.Key)
	require.Contains(t, string(snapshot.Value.ThinkResponse.PreviousMessages), "hello")
	gone := conversations.Next()
	require.Equal(t, "s1", gone.Key)
	require.Nil(t, gone.Value)
	require.Empty(t, b.letters.Drain())
	b.messages.Pipe("s1", say("s1", "two"))
	require.Equal(t, "[]", string(lookups.Next().Value.History))
}
