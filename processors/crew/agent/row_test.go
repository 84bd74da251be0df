package agent

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestRowsOfNewerBuildsAreRejected(t *testing.T) {
	raw, err := Table.Marshal(&State{Version: rowVersion + 1})
	require.NoError(t, err)
	_, err = Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = Table.Of(Table.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = Table.Of(7)
	require.ErrorIs(t, err, codec.ErrType)
	s, err := Table.Of(nil)
	require.NoError(t, err)
	require.Nil(t, s)
}

// Doors and hosts read rows that have no agent, such as those of keys that were never spawned.
func TestRowWithoutAgent(t *testing.T) {
	require.False(t, Live(nil))
	require.Empty(t, HostOf(nil))
	require.Empty(t, RunOf(nil))
	require.True(t, Removed(nil, 0))
	require.Equal(t, view.Agent{}, View(agentID, nil))
}

func TestOptionsAreChecked(t *testing.T) {
	for _, opt := range []Option{WithPermissionTimeout(0), WithHungAfter(-time.Second), WithRestartDelay(time.Microsecond)} {
		_, err := Graph("quay", opt)
		require.ErrorIs(t, err, ErrOption)
	}
	_, err := Graph("no name")
	require.Error(t, err)
	_, err = Graph("quay", WithPermissionTimeout(time.Hour))
	require.NoError(t, err)
}

func TestOptionsSetTheDeadlines(t *testing.T) {
	w := newWorld(t, WithPermissionTimeout(time.Hour), WithHungAfter(time.Minute), WithRestartDelay(time.Second))
	w.start().crew(normal("go")).beat(time.Minute)
	require.Len(t, fields(w.last, "agent:hung"), 1)
	w.host(permissionOf(w.run(), "1"))
	for _, e := range w.last {
		if ask, ok := e.(mailbox.Ask); ok {
			require.Equal(t, w.now.Add(time.Hour).UnixMilli(), ask.Request.ExpiresMS)
			require.Equal(t, agentID, ask.Request.SessionID)
		}
	}
	w.exit(1).pass(time.Second)
	require.Len(t, bodies[topics.CrewRestartDue](w.last), 1)
}

func TestClientsSeeTheAgent(t *testing.T) {
	w := newWorld(t)
	w.spawned.Lead, w.spawned.Level, w.spawned.Autopilot = true, 1, true
	created := view.Time(w.now.UnixMilli())
	w.start().crew(normal("go")).crew(normal("later")).say("working")
	raw, err := json.Marshal(w.view()) // as doors do
	require.NoError(t, err)
	require.JSONEq(t, `{
		"id":"`+agentID+`", "role":{"id":"developer","name":"Developer","description":"","systemPrompt":"","builtIn":false},
		"status":"running", "phase":"running", "task":"build", "parentId":"lead", "childIds":[],
		"createdAt":"`+created+`", "outputPreview":"working", "sessionId":"s1", "crewId":"c1",
		"projectId":"p1", "model":"m1", "cwd":"/src", "inputTokens":0, "outputTokens":0, "contextWindowSize":0,
		"contextWindowUsed":0, "pendingMessages":1, "isSubLead":true, "hierarchyLevel":1, "provider":"claude", "autopilot":true
	}`, string(raw))
}
