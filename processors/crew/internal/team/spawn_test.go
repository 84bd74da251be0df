package team

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestSpawnedAgentGetsItsRoleAndItsTask(t *testing.T) {
	h := newCrew(t)
	effects := h.door(crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead", Task: "Build a boat", Context: "Of oak"})
	spawns := mailOf[crewbody.Spawn](leadID, effects)
	require.Len(t, spawns, 1)
	s := spawns[0]
	require.True(t, s.Lead)
	require.Equal(t, crewbody.Member{
		AgentID: leadID, CrewID: "c1", ProjectID: "p1", RoleID: "lead", RoleName: "Project Lead", Host: "mill", Cwd: "/src",
		Repository: "boats",
	}, s.Member)
	require.Contains(t, s.Prompt, Roles()[0].SystemPrompt+"\n\n")
	require.True(t, strings.HasPrefix(s.Prompt, "[CREW CONTEXT]"), "the context precedes the role's prompt")
	require.Contains(t, s.Prompt, "You are the Project Lead. Your task: Build a boat\n\nContext: Of oak")
	require.Equal(t, view.Creating, h.member(leadID).Status)
}

func TestSpawnIsRefusedWithItsReason(t *testing.T) {
	h := newCrew(t, func(c *Config) { c.MaxAgents = 2 })
	refused := func(in crewbody.SpawnAsked) string {
		t.Helper()
		effects := h.door(in)
		require.Equal(t, []string{"agent:spawn_error"}, eventsOf(effects))
		require.Len(t, effects, 1)
		return fieldsOf("agent:spawn_error", effects)[0]["message"].(string)
	}
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: leadID, RoleID: "pirate"}), `no role "pirate"`)
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead", ParentID: otherID}), "parent is not")
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: "UPPER", RoleID: "lead"}), "ID")
	h.spawn(leadID, "lead", "")
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead"}), "already")
	h.spawn(otherID, "developer", leadID)
	third := "33330000-0000-0000-0000-000000000003"
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: third, RoleID: "tester", ParentID: otherID}), "not a lead")
	require.Contains(t, refused(crewbody.SpawnAsked{AgentID: third, RoleID: "tester"}), "2 agents")
	h.door(crewbody.TerminateAsked{AgentID: otherID})
	h.spawn(third, "tester", "")

	none := newHarness(t)
	effects := none.door(crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead"})
	require.Equal(t, []string{"agent:spawn_error"}, eventsOf(effects))
	require.Nil(t, none.row, "nothing is kept of a crew without settings")
}

func TestFullCrewHasItsLimitRaisedOnceByItsLead(t *testing.T) {
	h := newLead(t, func(c *Config) { c.MaxAgents = 2 })
	h.create(leadID, "developer", "")
	refused := h.door(crewbody.SpawnAsked{AgentID: otherID, RoleID: "tester", ParentID: leadID})
	require.Equal(t, []string{"agent:spawn_error"}, eventsOf(refused), "a person sets the limit")
	effects := h.command(leadID, "CREATE_AGENT", map[string]any{"role": "pirate"})
	require.Contains(t, notes(leadID, effects), "no role")
	require.Zero(t, h.state().Settings.MaxAgents, "that would not help")
	for range 10 {
		h.create(leadID, "developer", "")
	}
	require.EqualValues(t, 12, h.state().Settings.MaxAgents)
	effects = h.command(leadID, "CREATE_AGENT", map[string]any{"role": "developer"})
	require.Equal(t, []string{"agent:spawn_error"}, eventsOf(effects))
	require.Contains(t, notes(leadID, effects), "has 12 agents, which is its limit")

	h = newLead(t, func(c *Config) { c.MaxAgents = maxAgents })
	for range maxAgents - 1 {
		h.create(leadID, "developer", "")
	}
	require.Contains(t, notes(leadID, h.command(leadID, "CREATE_AGENT", map[string]any{"role": "developer"})), "which is its limit")
}

func TestEndedAgentsAreForgotten(t *testing.T) {
	h := newCrew(t)
	for i := range 3 * maxEndedMembers {
		id := fmt.Sprintf("%08x-0000", i)
		h.spawn(id, "developer", "")
		h.by("agent/"+id, crewbody.AgentExited{AgentID: id, Cause: crewbody.ExitClean})
	}
	require.LessOrEqual(t, len(h.state().Roster.Members), maxEndedMembers)
	require.LessOrEqual(t, len(h.state().Mailbox.Heard), maxEndedMembers+1)
	h.wait(forgetAfter)
	require.Empty(t, h.state().Roster.Members)
	require.Empty(t, h.state().Duties)
}
