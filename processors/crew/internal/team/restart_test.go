package team

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func (h *harness) crash(id string) []mailbox.Effect {
	h.tb.Helper()
	effects := h.by(mailbox.Agent(id), crewbody.AgentExited{AgentID: id, Code: 1, Cause: crewbody.ExitCrash, Restarting: true})
	return append(effects, h.status(id, view.Failed)...)
}

func TestCrashedAgentIsRestartedIfItsParentIsThere(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	effects := h.crash(dev)
	require.Equal(t, []string{"failed (exit code 1)"}, statuses(effects))
	require.Contains(t, eventsOf(effects), "attention:changed")
	require.Equal(t, view.Creating, h.member(dev).Status, "it has not ended for good")
	effects = h.by(mailbox.Agent(dev), crewbody.RestartDue{AgentID: dev, Crashes: 1})
	require.Equal(t, []crewbody.Restart{{}}, mailOf[crewbody.Restart](dev, effects))
	h.status(dev, view.Running)
	require.Equal(t, []string{"failed (exit code 1)"}, statuses(h.crash(dev)), "each crash is reported")

	h.door(crewbody.TerminateAsked{AgentID: leadID})
	effects = h.by(mailbox.Agent(dev), crewbody.RestartDue{AgentID: dev, Crashes: 2})
	require.Equal(t, []crewbody.Restart{{Refused: true}}, mailOf[crewbody.Restart](dev, effects))
	require.True(t, view.Ended(h.member(dev).Status))
}

// Whether a crashed agent is started again is decided when it asks, by what has become of its parent until then.
func TestV04_ParentThatIsGoneDecidesThatItsAgentIsNotRestarted(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(h *harness)
		refused bool
	}{
		"parent is idle": {func(*harness) {}, false},
		"parent crashed and is started again": {func(h *harness) {
			h.by(mailbox.Agent(leadID), crewbody.AgentExited{AgentID: leadID, Code: 1, Cause: crewbody.ExitCrash, Restarting: true})
		}, false},
		"parent has ended": {func(h *harness) {
			h.by(mailbox.Agent(leadID), crewbody.AgentExited{AgentID: leadID, Cause: crewbody.ExitClean})
		}, true},
		"parent has crashed for good": {func(h *harness) {
			h.by(mailbox.Agent(leadID), crewbody.AgentExited{AgentID: leadID, Code: 1, Cause: crewbody.ExitCrash})
		}, true},
		"parent was terminated": {func(h *harness) { h.door(crewbody.TerminateAsked{AgentID: leadID}) }, true},
		"parent is forgotten": {func(h *harness) {
			h.by(mailbox.Agent(leadID), crewbody.AgentExited{AgentID: leadID, Cause: crewbody.ExitClean})
			h.wait(forgetAfter)
			require.Nil(h.tb, h.state().Roster.Find(leadID))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newLead(t)
			dev := h.create(leadID, "developer", "Lay the keel")
			h.status(dev, view.Running)
			h.crash(dev)
			c.happens(h)
			effects := h.by(mailbox.Agent(dev), crewbody.RestartDue{AgentID: dev, Crashes: 1})
			require.Equal(t, []crewbody.Restart{{Refused: c.refused}}, mailOf[crewbody.Restart](dev, effects))
			require.Equal(t, c.refused, view.Ended(h.member(dev).Status))
		})
	}
}

func TestPersonRestartsAnAgentThatHasEnded(t *testing.T) {
	h := newLead(t, func(c *Config) { c.MaxAgents = 2 })
	dev := h.create(leadID, "developer", "Lay the keel")
	h.door(crewbody.TerminateAsked{AgentID: dev})
	effects := h.door(crewbody.RestartAsked{AgentID: dev})
	require.Equal(t, []crewbody.Restart{{Manual: true}}, mailOf[crewbody.Restart](dev, effects))
	require.Equal(t, view.Creating, h.member(dev).Status)
	h.status(dev, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.idle(dev, "", 0)))

	h.door(crewbody.TerminateAsked{AgentID: dev})
	h.create(leadID, "tester", "")
	require.Equal(t, []string{"agent:spawn_error"}, eventsOf(h.door(crewbody.RestartAsked{AgentID: dev})), "the crew is full")
}

func TestPausedCrewPausesItsAgents(t *testing.T) {
	h := newLead(t)
	effects := h.door(crewbody.SystemPaused{Paused: true})
	require.Equal(t, []crewbody.Pause{{Paused: true}}, mailOf[crewbody.Pause](leadID, effects))
	require.Equal(t, []string{"system:paused"}, eventsOf(effects))
	require.Empty(t, h.door(crewbody.SystemPaused{Paused: true}))
	effects = h.door(crewbody.SpawnAsked{AgentID: otherID, RoleID: "developer"})
	require.Equal(t, []crewbody.Pause{{Paused: true}}, mailOf[crewbody.Pause](otherID, effects))
	require.Len(t, mailOf[crewbody.Pause]("", h.door(crewbody.SystemPaused{})), 2)
}

func TestWorkOfAnAgentThatIsNotRestartedFails(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	h.crash(dev)
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Plank the hull"})
	h.by(mailbox.Agent(leadID), crewbody.AgentExited{AgentID: leadID, Code: 1, Cause: crewbody.ExitCrash})
	require.Equal(t, active, h.delegation(1).Status)
	effects := h.by(mailbox.Agent(dev), crewbody.RestartDue{AgentID: dev, Crashes: 1})
	require.Equal(t, failed, h.delegation(1).Status)
	require.Equal(t, []string{"failed (exit code 1)"}, statuses(effects))
	require.Empty(t, mailOf[crewbody.Prompt](leadID, effects), "the lead has ended")
}
