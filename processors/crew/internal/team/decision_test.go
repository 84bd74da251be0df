package team

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

// decide has the lead record a decision and returns its ID.
func (h *harness) decide(title string) string {
	h.tb.Helper()
	effects := h.command(leadID, "DECISION", map[string]any{"title": title, "needsConfirmation": true})
	return fieldsOf("lead:decision", effects)[0]["id"].(string)
}

func (h *harness) decision(id string) *Decision {
	h.tb.Helper()
	for _, d := range h.state().Decisions {
		if d.Id == id {
			return d
		}
	}
	require.Fail(h.tb, "no decision", id)
	return nil
}

func TestD01_DecisionsAreResolvedOnce(t *testing.T) {
	for action, verdict := range Verdicts {
		t.Run(action, func(t *testing.T) {
			h := newLead(t)
			id := h.decide("Use oak")
			require.Equal(t, Recorded, h.decision(id).Status)
			effects := h.door(crewbody.Decide{DecisionIDs: []string{id}, Action: action})
			require.Equal(t, []string{"decision:" + verdict, "attention:changed"}, eventsOf(effects))
			require.Equal(t, verdict, h.decision(id).Status)
			for again := range Verdicts {
				require.Empty(t, h.door(crewbody.Decide{DecisionIDs: []string{id}, Action: again}))
			}
			require.Empty(t, eventsOf(h.wait(time.Hour)))
			require.Equal(t, verdict, h.decision(id).Status)
			require.False(t, h.decision(id).AutoApproved)
		})
	}
	t.Run("alone after a minute", func(t *testing.T) {
		h := newLead(t)
		id := h.decide("Use oak")
		require.Empty(t, eventsOf(h.wait(time.Minute-time.Millisecond)))
		require.Equal(t, Recorded, h.decision(id).Status)
		require.Equal(t, []string{"decision:confirmed", "attention:changed"}, eventsOf(h.wait(time.Millisecond)))
		require.True(t, h.decision(id).AutoApproved)
		require.Empty(t, h.door(crewbody.Decide{DecisionIDs: []string{id}, Action: "reject"}))
	})
	t.Run("not while a person looks", func(t *testing.T) {
		h := newLead(t)
		id := h.decide("Use oak")
		h.wait(40 * time.Second)
		hold := func(client string, held bool) {
			h.door(crewbody.QueueHeld{Client: client, Held: held, UntilMS: h.now.Add(time.Minute).UnixMilli()})
		}
		hold("a", true)
		h.wait(30 * time.Second)
		hold("b", true)
		during := h.decide("Use tar")
		hold("a", false)
		h.wait(30 * time.Second)
		hold("b", true)
		require.Equal(t, Recorded, h.decision(id).Status)
		h.wait(time.Minute) // the hold of b expires
		h.wait(20*time.Second - time.Millisecond)
		require.Equal(t, Recorded, h.decision(id).Status, "20 s were left")
		h.wait(time.Millisecond)
		require.Equal(t, confirmed, h.decision(id).Status)
		require.Equal(t, Recorded, h.decision(during).Status)
		h.wait(40 * time.Second)
		require.Equal(t, confirmed, h.decision(during).Status)
	})
	t.Run("never those of the system", func(t *testing.T) {
		h := newLead(t)
		h.command(leadID, "REQUEST_LIMIT_CHANGE", map[string]any{"limit": 10})
		h.door(crewbody.QueueHeld{Client: "a", Held: true, UntilMS: h.now.Add(time.Minute).UnixMilli()})
		h.wait(time.Hour)
		d := h.state().Decisions[0]
		require.Equal(t, Recorded, d.Status)
		h.door(crewbody.Decide{DecisionIDs: []string{d.Id}, Action: "reject"})
		require.Equal(t, rejected, h.state().Decisions[0].Status)
		require.Zero(t, h.state().Settings.MaxAgents)
	})
}

func TestDecisionsAreResolvedTogether(t *testing.T) {
	h := newLead(t)
	ids := []string{h.decide("Use oak"), h.decide("Use tar"), "none"}
	effects := h.door(crewbody.Decide{DecisionIDs: ids, Action: "reject", By: "ines"})
	require.Equal(t, []string{"decisions:batch", "attention:changed"}, eventsOf(effects))
	require.Contains(t, notes(leadID, effects), `"Use oak" was rejected by a person`)
}

func TestLateStepConfirmsAtTheSameTime(t *testing.T) {
	h := newLead(t)
	id := h.decide("Use oak")
	h.now = h.now.Add(2 * time.Minute) // crewbody.Due has not been read
	effects := h.door(crewbody.Decide{DecisionIDs: []string{id}, Action: "reject"})
	require.Equal(t, []string{"decision:confirmed", "attention:changed"}, eventsOf(effects))
	require.Equal(t, confirmed, h.decision(id).Status)
}

func TestOpenDecisionsAreBounded(t *testing.T) {
	h := newLead(t)
	for i := range maxDecisions {
		h.decide(fmt.Sprint("Use ", i))
	}
	effects := h.command(leadID, "DECISION", map[string]any{"title": "One more"})
	require.Contains(t, notes(leadID, effects), "too many decisions are open")
	h.wait(time.Minute)
	h.decide("One more")
}

func TestCategoriesOfDecisions(t *testing.T) {
	for title, want := range map[string]string{
		"Adopt a naming convention": "style", "Design of the API": "architecture", "Grant access to the shell": "tool_access",
		"Upgrade the parser library": "dependency", "Raise the coverage": "testing", "Lunch": "general",
	} {
		require.Equal(t, want, categoryOf(title), title)
	}
}
