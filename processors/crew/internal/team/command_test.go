package team

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestX10_OnlyLeadsGiveWork(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Plane the planks")
	h.status(dev, view.Running)
	for name, payload := range map[string]any{
		"DELEGATE":             map[string]any{"to": leadID, "task": "x"},
		"CREATE_AGENT":         map[string]any{"role": "tester", "task": "x"},
		"TERMINATE_AGENT":      map[string]any{"agentId": leadID},
		"CANCEL_DELEGATION":    map[string]any{"agentId": dev},
		"DECLARE_TASKS":        map[string]any{"tasks": []any{map[string]any{"taskId": "t", "role": "developer"}}},
		"ADD_TASK":             map[string]any{"taskId": "t", "role": "developer"},
		"PAUSE_TASK":           map[string]any{"taskId": "t"},
		"RESUME_TASK":          map[string]any{"taskId": "t"},
		"RETRY_TASK":           map[string]any{"taskId": "t"},
		"REOPEN_TASK":          map[string]any{"taskId": "t"},
		"SKIP_TASK":            map[string]any{"taskId": "t"},
		"CANCEL_TASK":          map[string]any{"taskId": "t"},
		"FORCE_READY":          map[string]any{"taskId": "t"},
		"ASSIGN_TASK":          map[string]any{"taskId": "t", "agentId": dev},
		"REASSIGN_TASK":        map[string]any{"taskId": "t", "agentId": dev},
		"RESET_DAG":            nil,
		"REQUEST_LIMIT_CHANGE": map[string]any{"limit": 5},
	} {
		before := h.state()
		effects := h.command(dev, name, payload)
		require.Len(t, effects, 1, name)
		require.Equal(t, "[System] "+name+" error: only a lead may do this.", notes(dev, effects))
		after := h.state()
		after.Mailbox, after.DeadlineMs = before.Mailbox, before.DeadlineMs
		for i, d := range before.Duties {
			after.Duties[i].Noted = d.Noted // the refusal
		}
		require.Equal(t, before.String(), after.String(), name)
	}
}

func TestX11_LeadsTerminateTheirDescendantsOnly(t *testing.T) {
	h := newLead(t)
	sub := h.create(leadID, "lead", "")
	h.status(sub, view.Idle)
	grandchild := h.create(sub, "developer", "Plane the planks")
	h.spawn(otherID, "lead", "")
	stranger := h.create(otherID, "developer", "")

	for _, id := range []string{otherID, stranger, leadID, "beef"} {
		require.Contains(t, notes(leadID, h.command(leadID, "TERMINATE_AGENT", map[string]any{"agentId": id})), "none of your agents")
	}
	require.Contains(t, notes(sub, h.command(sub, "TERMINATE_AGENT", map[string]any{"agentId": leadID})), "none of your agents")
	effects := h.command(leadID, "TERMINATE_AGENT", map[string]any{"agentId": grandchild[:8], "reason": "enough"})
	require.Equal(t, []crewbody.Terminate{{Reason: "enough"}}, mailOf[crewbody.Terminate](grandchild, effects))
	require.Equal(t, view.Terminated, h.member(grandchild).Status)
	require.Equal(t, view.Idle, h.member(sub).Status)
	require.Contains(t, notes(leadID, h.command(leadID, "TERMINATE_AGENT", map[string]any{"agentId": grandchild})), "has ended already")

	again := h.create(sub, "tester", "")
	effects = h.command(leadID, "TERMINATE_AGENT", map[string]any{"agentId": sub})
	require.Len(t, mailOf[crewbody.Terminate](sub, effects), 1)
	require.Len(t, mailOf[crewbody.Terminate](again, effects), 1, "and the agents below it")
	require.Equal(t, view.Idle, h.member(otherID).Status)
	require.Equal(t, view.Creating, h.member(stranger).Status)
}

func TestCommandsThatNoAgentMayGive(t *testing.T) {
	h := newLead(t)
	for _, name := range []string{"SPAWN_AGENT", "QUERY_PROVIDERS", "LIST_TEMPLATES", "TELEGRAM_SEND", "ACQUIRE_CAPABILITY"} {
		effects := h.command(leadID, name, map[string]any{"role": "developer"})
		require.Len(t, effects, 1, name)
		require.Contains(t, notes(leadID, effects), "not available", name)
	}
	require.Len(t, h.state().Roster.Members, 1)
}

func TestCommandsOfEndedAndUnknownAgentsHaveNoEffect(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "")
	h.door(crewbody.TerminateAsked{AgentID: dev})
	require.Empty(t, h.command(dev, "BROADCAST", map[string]any{"content": "x"}))
	require.Empty(t, h.command(otherID, "BROADCAST", map[string]any{"content": "x"}))
	effects := h.by(mailbox.Agent(otherID), crewbody.Command{
		Member: crewbody.Member{AgentID: leadID}, Name: "CREATE_AGENT", Payload: topics.Raw(`{"role":"developer"}`),
	})
	require.Empty(t, effects, "an agent speaks for itself")
}

func TestInvalidPayloadIsAnsweredOnce(t *testing.T) {
	h := newLead(t)
	effects := h.command(leadID, "DELEGATE", map[string]any{"to": "x"})
	require.Len(t, effects, 1)
	require.Contains(t, notes(leadID, effects), "task")
}

func TestProgressIsToldWithTheStateOfTheTasks(t *testing.T) {
	h := newLead(t)
	secretary := h.create(leadID, "secretary", "")
	dev := h.create(leadID, "developer", "")
	h.command(leadID, "DECLARE_TASKS", map[string]any{"tasks": []any{
		map[string]any{"taskId": "a", "role": "developer", "status": "done"},
		map[string]any{"taskId": "b", "role": "developer", "dependsOn": []string{"a"}},
	}})
	effects := h.command(dev, "PROGRESS", map[string]any{"percent": "40"})
	require.Equal(t, map[string]any{
		"agentId": dev, "summary": "1/2 tasks complete", "percent": 40.0, "dag": map[string]any{
			"summary": "1/2 tasks complete", "completed": []any{"a"}, "in_progress": []any{}, "blocked": []any{},
		},
	}, fieldsOf("lead:progress", effects)[0])
	require.Contains(t, notes(secretary, effects), `"percent":40`)
	effects2 := h.command(dev, "PROGRESS", map[string]any{"completed": []string{"one"}, "in_progress": []string{"two"}, "blocked": []string{"three"}})
	own := fieldsOf("lead:progress", effects2)[0]
	require.Equal(t, []any{[]any{"one"}, []any{"two"}, []any{"three"}}, []any{own["completed"], own["in_progress"], own["blocked"]})
	require.Equal(t, "progress_update", fieldsOf("activity", effects)[0]["entry"].(map[string]any)["actionType"])
}

func TestActivitiesHaveRisingIDs(t *testing.T) {
	h := newLead(t)
	first := len(h.state().Activities)
	for range 2 * maxActivities {
		h.command(leadID, "ACTIVITY", map[string]any{"actionType": "file_read", "summary": "Read", "details": map[string]any{"n": 1}})
	}
	list := Activities(h.state())
	require.Len(t, list, maxActivities)
	require.EqualValues(t, first+2*maxActivities, list[len(list)-1].ID)
	for i := 1; i < len(list); i++ {
		require.Equal(t, list[i-1].ID+1, list[i].ID)
	}
	require.JSONEq(t, `{"n":1}`, string(list[0].Details))
}

func TestAPersonRaisesTheLimitOfAgents(t *testing.T) {
	h := newLead(t, func(c *Config) { c.MaxAgents = 1 })
	for range 10 {
		h.create(leadID, "developer", "") // the first one raises the limit
	}
	effects := h.command(leadID, "CREATE_AGENT", map[string]any{"role": "developer"})
	require.Contains(t, notes(leadID, effects), "which is its limit")
	require.Equal(t, []string{"agent:spawn_error"}, eventsOf(effects))
	h.command(leadID, "REQUEST_LIMIT_CHANGE", map[string]any{"limit": 12, "reason": "more hands"})
	d := Decisions(h.state())[0]
	h.door(crewbody.Decide{DecisionIDs: []string{d.ID}, Action: "confirm"})
	h.create(leadID, "developer", "")
	require.EqualValues(t, 12, h.state().Settings.MaxAgents)
}

func TestQueryCrewShowsTheCrew(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Plane the planks")
	require.Contains(t, notes(leadID, h.command(leadID, "QUERY_CREW", nil)), view.ShortID(dev))
}

// An agent that has ended its turn waits for the answers to these commands before it counts as finished.
func TestCommandsAreAnsweredAsAgentsExpect(t *testing.T) {
	task := map[string]any{"taskId": "t", "role": "developer"}
	for name, payload := range map[string]any{
		"CREATE_AGENT": map[string]any{"role": "developer"}, "DELEGATE": map[string]any{"to": otherID, "task": "x"},
		"TERMINATE_AGENT": map[string]any{"agentId": otherID}, "CANCEL_DELEGATION": map[string]any{"agentId": otherID},
		"AGENT_MESSAGE": map[string]any{"to": otherID, "content": "x"}, "DIRECT_MESSAGE": map[string]any{"to": otherID, "content": "x"},
		"BROADCAST": map[string]any{"content": "x"}, "INTERRUPT": map[string]any{"to": otherID, "content": "x"}, "QUERY_PEERS": nil,
		"CREATE_GROUP": map[string]any{"name": "h", "members": []string{otherID}}, "ADD_TO_GROUP": map[string]any{"group": "g", "members": []string{otherID}},
		"REMOVE_FROM_GROUP": map[string]any{"group": "g", "members": []string{otherID}}, "GROUP_MESSAGE": map[string]any{"group": "g", "content": "x"},
		"LIST_GROUPS": nil, "QUERY_GROUPS": nil, "REACT": map[string]any{"group": "g", "emoji": "+"},
		"ACTIVITY": map[string]any{"summary": "x"}, "DECISION": map[string]any{"title": "x"}, "PROGRESS": map[string]any{"percent": 5},
		"DECLARE_TASKS": map[string]any{"tasks": []any{task}}, "ADD_TASK": task, "COMPLETE_TASK": map[string]any{"taskId": "keel"},
		"PAUSE_TASK": map[string]any{"taskId": "keel"}, "RESUME_TASK": map[string]any{"taskId": "keel"}, "RETRY_TASK": map[string]any{"taskId": "keel"},
		"REOPEN_TASK": map[string]any{"taskId": "keel"}, "SKIP_TASK": map[string]any{"taskId": "keel"}, "CANCEL_TASK": map[string]any{"taskId": "keel"},
		"FORCE_READY": map[string]any{"taskId": "hull"}, "ADD_DEPENDENCY": map[string]any{"taskId": "hull", "dependsOn": []string{"keel"}},
		"ASSIGN_TASK": map[string]any{"taskId": "keel", "agentId": otherID}, "REASSIGN_TASK": map[string]any{"taskId": "keel", "agentId": otherID},
		"TASK_STATUS": nil, "QUERY_TASKS": nil, "RESET_DAG": nil, "QUERY_CREW": nil, "HALT_HEARTBEAT": nil, "RESUME_HEARTBEAT": nil,
		"REQUEST_LIMIT_CHANGE": map[string]any{"limit": 5}, "LIST_TIMERS": nil, "CANCEL_TIMER": map[string]any{"label": "a"},
		"SET_TIMER": map[string]any{"label": "a", "delay": 5, "message": "x"}, "SPAWN_AGENT": map[string]any{"role": "developer"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newLead(t)
			h.spawn(otherID, "developer", leadID)
			withTasks(h)
			h.command(leadID, "CREATE_GROUP", map[string]any{"name": "g", "members": []string{otherID}})
			h.command(otherID, "GROUP_MESSAGE", map[string]any{"group": "g", "content": "x"})
			for _, id := range []string{otherID, leadID} {
				answers := mailOf[crewbody.Note](id, h.command(id, name, payload))
				if command.Answered(name) {
					require.NotEmpty(t, answers)
					require.NotEmpty(t, answers[0].CommandID)
				} else if id == leadID {
					require.Empty(t, answers)
				}
			}
		})
	}
}

// The answer to a command is on its way when the agent reports that it has nothing to do.
func TestAgentWithAnAnswerOnItsWayHasNotFinished(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	heard := h.state().Mailbox.Sent
	require.NotEmpty(t, notes(dev, h.command(dev, "QUERY_CREW", nil)))
	require.Empty(t, statuses(h.idle(dev, "let me see who can help", heard)), "another turn follows")
	require.Equal(t, active, h.delegation(0).Status)
	require.Equal(t, []string{"completed"}, statuses(h.idle(dev, "it lies", h.state().Mailbox.Sent)))
	require.Equal(t, completed, h.delegation(0).Status)
}
