package team

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestTimersFireOnceOrAgainAndAgain(t *testing.T) {
	h := newLead(t)
	h.command(leadID, "SET_TIMER", map[string]any{"label": "once", "delay": 5, "message": "look"})
	h.command(leadID, "SET_TIMER", map[string]any{"label": "often", "delay": "1m", "message": "again", "repeat": true})
	require.Empty(t, eventsOf(h.wait(5*time.Second-time.Millisecond)))
	effects := h.wait(time.Millisecond)
	require.Equal(t, []crewbody.Prompt{{Text: `[Timer "once"]: look`}}, mailOf[crewbody.Prompt](leadID, effects))
	require.Equal(t, []string{"timer:fired"}, eventsOf(effects))
	require.Len(t, mailOf[crewbody.Prompt](leadID, h.wait(5*time.Minute)), 5)
	h.now = h.now.Add(10*time.Minute + time.Second) // the group did not run
	require.Len(t, mailOf[crewbody.Prompt](leadID, h.wait(0)), 1, "missed times are not made up for")
	require.Contains(t, notes(leadID, h.command(leadID, "LIST_TIMERS", nil)), "often")
	require.Equal(t, []string{"timer:cancelled"}, eventsOf(h.command(leadID, "CANCEL_TIMER", map[string]any{"label": "often"})))
	require.Contains(t, notes(leadID, h.command(leadID, "CANCEL_TIMER", map[string]any{"label": "often"})), "no such timer")
	require.Empty(t, h.wait(time.Hour))
}

func TestTimersAreBounded(t *testing.T) {
	h := newLead(t)
	for i := range maxAgentTimers {
		h.command(leadID, "SET_TIMER", map[string]any{"label": fmt.Sprint(i), "delay": 60, "message": "look"})
	}
	require.Contains(t, notes(leadID, h.command(leadID, "SET_TIMER", map[string]any{"label": "more", "delay": 60, "message": "look"})), "too many")
	effects := h.command(leadID, "SET_TIMER", map[string]any{"label": "3", "delay": 60, "message": "another"})
	require.Equal(t, []string{"timer:cancelled", "timer:created"}, eventsOf(effects), "one with the same label is replaced")
	h.door(crewbody.TerminateAsked{AgentID: leadID})
	require.Empty(t, mailOf[crewbody.Prompt]("", h.wait(time.Hour)))
	require.Empty(t, h.state().Timers)
}

func TestIdleLeadIsRemindedOfItsWork(t *testing.T) {
	h := newLead(t)
	withTasks(h)
	require.Empty(t, mailOf[crewbody.Prompt](leadID, h.wait(time.Hour)), "it has no agents")
	dev := h.create(leadID, "developer", "")
	h.status(dev, view.Idle)
	require.Empty(t, mailOf[crewbody.Prompt](leadID, h.wait(nudgeEvery-time.Millisecond)))
	require.Len(t, mailOf[crewbody.Prompt](leadID, h.wait(time.Millisecond)), 1)
	effects := h.wait(24 * time.Hour)
	require.Len(t, mailOf[crewbody.Prompt](leadID, effects), maxNudges-1)
	require.Len(t, fieldsOf("lead:stalled", effects), maxNudges-stalledNudges+1)
	h.status(dev, view.Running)
	h.status(dev, view.Idle)
	require.Len(t, mailOf[crewbody.Prompt](leadID, h.wait(nudgeEvery)), 1, "something has moved")
	h.command(leadID, "HALT_HEARTBEAT", nil)
	require.Empty(t, mailOf[crewbody.Prompt](leadID, h.wait(time.Hour)))
	h.command(leadID, "RESUME_HEARTBEAT", nil)
	require.Len(t, mailOf[crewbody.Prompt](leadID, h.wait(nudgeEvery)), 1)
}
