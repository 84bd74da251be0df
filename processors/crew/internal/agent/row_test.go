package agent

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestRowsOfNewerBuildsAreRejected(t *testing.T) {
	raw, err := Table.Marshal(&State{Version: Table.Version + 1})
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
	require.Equal(t, view.Agent{}, View(agentID, nil))
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{PermissionTimeout: -1}, {HungAfter: -time.Second}, {RestartDelay: time.Microsecond}} {
		_, err := Group("quay", c)
		require.ErrorIs(t, err, mailbox.ErrConfig)
	}
	_, err := Group("no name", Config{})
	require.Error(t, err)
	_, err = Group("quay", Config{PermissionTimeout: time.Hour})
	require.NoError(t, err)
}

func TestConfigSetsTheDeadlines(t *testing.T) {
	w := newWorld(t, Config{PermissionTimeout: time.Hour, HungAfter: time.Minute, RestartDelay: time.Second})
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
	require.Len(t, bodies[crewbody.RestartDue](w.last), 1)
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
