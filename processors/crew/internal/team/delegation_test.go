package team

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// idle says that an agent ended a turn. heard is the number of the crew's last input that the agent knew.
func (h *harness) idle(id, output string, heard int64) []mailbox.Effect {
	h.tb.Helper()
	effects := h.by(mailbox.Agent(id), crewbody.AgentIdle{AgentID: id, StopReason: "end_turn", Output: output, Heard: heard})
	return append(effects, h.status(id, view.Idle)...)
}

func (h *harness) exit(id string, code int, cause string) []mailbox.Effect {
	h.tb.Helper()
	return h.by(mailbox.Agent(id), crewbody.AgentExited{AgentID: id, Code: code, Cause: cause})
}

// reports returns the texts of the reports that a lead gets.
func reports(id string, effects []mailbox.Effect) (texts []string) {
	for _, p := range mailOf[crewbody.Prompt](id, effects) {
		texts = append(texts, p.Text)
	}
	return texts
}

// statuses returns the statuses of agent:completion_reported.
func statuses(effects []mailbox.Effect) (list []string) {
	for _, f := range fieldsOf("agent:completion_reported", effects) {
		list = append(list, f["status"].(string))
	}
	return list
}

func (h *harness) delegation(i int) *Delegation {
	h.tb.Helper()
	list := h.state().Delegations
	require.Greater(h.tb, len(list), i)
	return list[i]
}

// withTasks declares the tasks keel and hull, which needs the keel.
func withTasks(h *harness) {
	h.command(leadID, "DECLARE_TASKS", map[string]any{"tasks": []any{
		map[string]any{"taskId": "keel", "role": "developer", "description": "Lay the keel"},
		map[string]any{"taskId": "hull", "role": "developer", "description": "Plank the hull", "dependsOn": []string{"keel"}},
	}})
}

func TestD02_DelegationEndsWithOneReport(t *testing.T) {
	// The contract's head leaves a delegation active when its agent goes idle; the chosen behaviour is the earlier one: the
	// end of a turn with nothing left to do completes it, as COMPLETE_TASK does.
	begin := func(t *testing.T) (*harness, string) {
		h := newLead(t)
		dev := h.create(leadID, "developer", "")
		h.status(dev, view.Idle)
		withTasks(h)
		effects := h.command(leadID, "DELEGATE", map[string]any{"to": dev[:8], "task": "Lay the keel", "context": "Of oak", "dagTaskId": "keel"})
		require.Contains(t, eventsOf(effects), "agent:delegated")
		require.Equal(t, "delegated", fieldsOf("activity", effects)[0]["entry"].(map[string]any)["actionType"])
		require.Equal(t, []crewbody.Prompt{{Text: "[DAG Task: keel] Lay the keel\n\nContext: Of oak", FromID: leadID}},
			mailOf[crewbody.Prompt](dev, effects))
		require.Equal(t, []crewbody.Task{{Task: "Lay the keel"}}, mailOf[crewbody.Task](dev, effects))
		require.Equal(t, taskRunning, h.state().Tasks[0].Status)
		require.Equal(t, active, h.delegation(0).Status)
		h.status(dev, view.Running)
		return h, dev
	}
	t.Run("said", func(t *testing.T) {
		h, dev := begin(t)
		effects := h.command(dev, "COMPLETE_TASK", map[string]any{"summary": "It lies"})
		require.Len(t, reports(leadID, effects), 1)
		require.Contains(t, reports(leadID, effects)[0], "[Agent Report] [keel] Developer ("+dev[:8]+") completed its task.")
		require.Contains(t, reports(leadID, effects)[0], "It lies")
		require.Equal(t, []string{"completed"}, statuses(effects))
		require.Contains(t, notes(leadID, effects), "- hull")
		require.Equal(t, completed, h.delegation(0).Status)
		require.Equal(t, "It lies", h.delegation(0).Result)
		require.Equal(t, taskDone, h.state().Tasks[0].Status)
		require.Equal(t, taskReady, h.state().Tasks[1].Status)
	})
	t.Run("idle", func(t *testing.T) {
		h, dev := begin(t)
		effects := h.idle(dev, "The keel lies", 0)
		require.Len(t, reports(leadID, effects), 1)
		require.Equal(t, []string{"completed"}, statuses(effects))
		require.Equal(t, completed, h.delegation(0).Status)
		require.Equal(t, taskDone, h.state().Tasks[0].Status)
		require.Empty(t, reports(leadID, h.idle(dev, "", 0)), "once until it runs again")
	})
	t.Run("failed", func(t *testing.T) {
		h, dev := begin(t)
		effects := h.exit(dev, 3, crewbody.ExitCrash)
		require.Equal(t, []string{"failed (exit code 3)"}, statuses(effects))
		require.Len(t, reports(leadID, effects), 1)
		require.Equal(t, failed, h.delegation(0).Status)
		require.Equal(t, taskFailed, h.state().Tasks[0].Status)
		require.Equal(t, taskBlocked, h.state().Tasks[1].Status)
	})
}

func TestD03_OneReportForOneEnd(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.command(dev, "COMPLETE_TASK", map[string]any{"summary": "done"})))
	require.Empty(t, statuses(h.idle(dev, "done", 0)), "COMPLETE_TASK was reported")
	require.Empty(t, statuses(h.exit(dev, 0, crewbody.ExitClean)), "and a clean exit adds nothing")

	crashes := h.create(leadID, "developer", "Lay the keel")
	h.status(crashes, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.idle(crashes, "done", 0)))
	effects := h.exit(crashes, 1, crewbody.ExitCrash)
	require.Equal(t, []string{"failed (exit code 1)"}, statuses(effects), "a crash is reported whatever was reported before")
	require.Len(t, reports(leadID, effects), 1)
}

func TestD04_CancelledDelegationClearsTheQueue(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "")
	h.status(dev, view.Running)
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Lay the keel"})
	effects := h.command(leadID, "CANCEL_DELEGATION", map[string]any{"agentId": dev[:8]})
	require.Len(t, mailOf[crewbody.ClearQueue](dev, effects), 1)
	require.Equal(t, cancelled, h.delegation(0).Status)
	require.Empty(t, statuses(h.idle(dev, "I stopped", 0)), "the lead asked for it")
	h.status(dev, view.Running)
	require.Equal(t, "delegation_cancelled", fieldsOf("activity", effects)[0]["entry"].(map[string]any)["actionType"])
	for _, again := range []map[string]any{{"agentId": dev}, {"delegationId": h.delegation(0).Id}} {
		effects = h.command(leadID, "CANCEL_DELEGATION", again)
		require.Len(t, effects, 1)
		require.Contains(t, notes(leadID, effects), "no such delegation is active")
	}
	h.spawn(otherID, "lead", "")
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Lay the keel"})
	effects = h.command(otherID, "CANCEL_DELEGATION", map[string]any{"delegationId": h.delegation(1).Id})
	require.Contains(t, notes(otherID, effects), "no such delegation is active", "it is another lead's")
}

// The lead delegates while the agent ends a turn: what the agent says about that turn is not about the new task.
func TestWhatAnAgentSaidBeforeItKnewOfATaskDoesNotEndIt(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	before := h.state().Mailbox.Sent
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Plank the hull"})
	after := h.state().Mailbox.Sent

	require.Empty(t, statuses(h.idle(dev, "The keel lies", before)), "another turn follows")
	require.Equal(t, active, h.delegation(1).Status)
	h.status(dev, view.Running)
	h.by(mailbox.Agent(dev), crewbody.Command{
		Member: crewbody.Member{AgentID: dev}, Name: "COMPLETE_TASK", Payload: topics.Raw(`{"summary":"The keel lies"}`), Heard: before,
	})
	require.Equal(t, completed, h.delegation(0).Status)
	require.Equal(t, active, h.delegation(1).Status)
	require.Empty(t, statuses(h.idle(dev, "The keel lies", after)), "the answer to COMPLETE_TASK begins another turn")
	h.status(dev, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.idle(dev, "The hull is planked", h.state().Mailbox.Sent)))
	require.Equal(t, completed, h.delegation(1).Status)

	h.status(dev, view.Running)
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Step the mast"})
	effects := h.by(mailbox.Agent(dev), crewbody.AgentExited{AgentID: dev, Cause: crewbody.ExitClean, Heard: after})
	require.Equal(t, failed, h.delegation(2).Status, "it was never begun")
	require.Len(t, statuses(effects), 1)
}

func TestTerminatedAgentsWorkFailsAtOnce(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	effects := h.door(crewbody.TerminateAsked{AgentID: dev})
	require.Equal(t, []string{"terminated"}, statuses(effects))
	require.Equal(t, failed, h.delegation(0).Status)
	require.Empty(t, statuses(h.exit(dev, 0, crewbody.ExitTerminated)))
	require.Equal(t, view.Terminated, h.member(dev).Status)
}

func TestAgentOfAStoppedHostKeepsItsWork(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Running)
	effects := h.by(mailbox.Agent(dev), crewbody.AgentExited{AgentID: dev, Code: 1, Cause: crewbody.ExitHostStopped, Restarting: true})
	require.Empty(t, effects)
	require.Equal(t, active, h.delegation(0).Status)
	h.status(dev, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.idle(dev, "done", 0)))
}

func TestLeadThatWaitsForItsAgentsHasNotFinished(t *testing.T) {
	h := newLead(t)
	sub := h.create(leadID, "lead", "Build the boat")
	h.status(sub, view.Running)
	dev := h.create(sub, "developer", "Lay the keel")
	require.Empty(t, statuses(h.idle(sub, "waiting", 0)))
	h.status(dev, view.Running)
	h.idle(dev, "done", 0)
	h.status(sub, view.Running)
	require.Equal(t, []string{"completed"}, statuses(h.idle(sub, "built", 0)))
}

func TestWorkOfAnAgentThatEndsWithoutAWordFails(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Lay the keel")
	h.status(dev, view.Failed) // and its exit is lost
	require.Empty(t, statuses(h.wait(lostAfter-time.Millisecond)))
	require.Equal(t, []string{"failed (exit code 1)"}, statuses(h.wait(time.Millisecond)))
	require.Equal(t, failed, h.delegation(0).Status)
}

func TestDelegationToAStrangerOrAnEndedAgentIsRefused(t *testing.T) {
	h := newLead(t)
	h.spawn(otherID, "developer", "")
	dev := h.create(leadID, "developer", "")
	h.door(crewbody.TerminateAsked{AgentID: dev})
	for id, want := range map[string]string{otherID: "none of your agents", dev: "has ended", "de": "none of your agents"} {
		effects := h.command(leadID, "DELEGATE", map[string]any{"to": id, "task": "x"})
		require.Len(t, effects, 1)
		require.Contains(t, notes(leadID, effects), want)
	}
	require.Contains(t, notes(leadID, h.command(leadID, "CREATE_AGENT", map[string]any{"role": "developer", "task": "x", "dagTaskId": "none"})),
		`no task "none"`)
}

func TestThreeAgentsWithTheSameWorkGetAGroup(t *testing.T) {
	h := newLead(t)
	for range 3 {
		h.create(leadID, "developer", "Planking of the hull")
	}
	groups := h.state().Talk.Groups()
	require.Len(t, groups, 1)
	require.Equal(t, "planking-team", groups[0].Name)
	require.Len(t, groups[0].MemberIDs, 4)
	require.Len(t, h.state().Talk.Messages("planking-team"), 1)
}
