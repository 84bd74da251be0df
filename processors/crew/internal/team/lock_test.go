package team

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestLocksAreShownToTheCrew(t *testing.T) {
	h := newLead(t)
	h.wait(time.Minute)
	h.status(leadID, view.Running)
	changed := func(action string) []mailbox.Effect {
		return h.by("repository/boats", crewbody.LockChanged{
			Action: action, Repository: "boats", FilePath: "hull.go", AgentID: leadID, HolderID: otherID,
		})
	}
	require.Equal(t, []string{"activity"}, eventsOf(changed(crewbody.LockAcquired)))
	require.Len(t, h.state().Roster.Locks, 1)
	refreshes := mailOf[crewbody.Refresh](leadID, h.wait(2*time.Second))
	require.Len(t, refreshes, 1)
	require.Contains(t, refreshes[0].Text, "hull.go")
	require.Equal(t, "lock_denied", fieldsOf("activity", changed(crewbody.LockDenied))[0]["entry"].(map[string]any)["actionType"])
	changed(crewbody.LockExpired)
	require.Empty(t, h.state().Roster.Locks)
}

func TestCommitsAreActivities(t *testing.T) {
	h := newLead(t)
	effects := h.by("repository/boats", crewbody.Committed{AgentID: leadID, Commit: "c0ffee", Files: []string{"hull.go"}, Message: "Plank\n\nbody"})
	entry := fieldsOf("activity", effects)[0]["entry"].(map[string]any)
	require.Equal(t, "file_edit", entry["actionType"])
	require.Equal(t, "Commit: Plank (1 files)", entry["summary"])
	require.Equal(t, []any{"hull.go"}, entry["details"].(map[string]any)["files"])
}

func TestPeopleTalkToTheCrew(t *testing.T) {
	h := newLead(t)
	effects := h.door(crewbody.Say{To: leadID, Text: "Build a boat"})
	require.Len(t, mailOf[crewbody.Prompt](leadID, effects), 1)
	dev := h.create(leadID, "developer", "")
	h.status(dev, view.Idle)
	effects = h.command(dev, "AGENT_MESSAGE", map[string]any{"to": "lead", "content": "Which oak?"})
	require.Len(t, mailOf[crewbody.Prompt](leadID, effects), 1)
	require.Contains(t, eventsOf(effects), "bus:message")
	require.Equal(t, "message_sent", fieldsOf("activity", effects)[0]["entry"].(map[string]any)["actionType"])
	effects = h.by(mailbox.Agent(leadID), crewbody.Dropped{AgentID: leadID, FromID: dev, Reason: "it has ended"})
	require.Contains(t, notes(dev, effects), "not delivered")
}

func TestLockWithALongPathEnds(t *testing.T) {
	h := newLead(t)
	path := strings.Repeat("船", 400) // 1200 bytes, and the row keeps fewer
	for _, action := range []string{crewbody.LockReleased, crewbody.LockExpired} {
		h.by("repository/boats", crewbody.LockChanged{Action: crewbody.LockAcquired, Repository: "boats", FilePath: path, AgentID: leadID})
		require.Len(t, h.state().Roster.Locks, 1)
		h.by("repository/boats", crewbody.LockChanged{Action: action, Repository: "boats", FilePath: path, AgentID: leadID})
		require.Empty(t, h.state().Roster.Locks)
	}
}
