package team

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// dag returns the statuses of the lead's tasks.
func (h *harness) dag() map[string]string {
	h.tb.Helper()
	all := map[string]string{}
	for _, t := range Tasks(h.state()) {
		all[t.ID] = t.DagStatus
	}
	return all
}

func (h *harness) onTask(name, id string) string {
	h.tb.Helper()
	return notes(leadID, h.command(leadID, name, map[string]any{"taskId": id}))
}

func TestMovesOfTasks(t *testing.T) {
	h := newLead(t)
	effects := func(name, id string) []string {
		return eventsOf(h.command(leadID, name, map[string]any{"taskId": id}))
	}
	withTasks(h)
	require.Equal(t, map[string]string{"keel": taskReady, "hull": taskPending}, h.dag())
	require.Equal(t, []string{"dag:updated", "task:updated"}, effects("PAUSE_TASK", "keel"))
	require.Equal(t, taskPaused, h.dag()["keel"])
	require.Contains(t, h.onTask("RETRY_TASK", "keel"), "is paused")
	require.Equal(t, []string{"dag:updated", "task:updated"}, effects("RESUME_TASK", "keel"))
	require.Equal(t, taskReady, h.dag()["keel"])
	require.Contains(t, h.onTask("FORCE_READY", "hull"), "is ready")
	h.onTask("PAUSE_TASK", "hull")
	h.onTask("RESUME_TASK", "hull")
	require.Equal(t, taskPending, h.dag()["hull"])
	require.Contains(t, h.onTask("COMPLETE_TASK", "keel"), "hull", "the lead is told what can begin")
	require.Equal(t, map[string]string{"keel": taskDone, "hull": taskReady}, h.dag())
	require.Contains(t, h.onTask("SKIP_TASK", "keel"), "is done")
	h.onTask("REOPEN_TASK", "keel")
	require.Equal(t, taskReady, h.dag()["keel"])
	h.onTask("SKIP_TASK", "hull")
	require.Equal(t, taskSkipped, h.dag()["hull"])
	h.onTask("CANCEL_TASK", "hull")
	require.Equal(t, map[string]string{"keel": taskReady}, h.dag())
	require.Contains(t, h.onTask("CANCEL_TASK", "hull"), "no task")
	require.Equal(t, []string{"dag:updated", "task:removed"}, eventsOf(h.command(leadID, "RESET_DAG", nil)))
	require.Empty(t, h.dag())
}

func TestFailedTaskBlocksThoseThatNeedIt(t *testing.T) {
	h := newLead(t)
	withTasks(h)
	dev := h.create(leadID, "developer", "Lay the keel")
	require.Equal(t, map[string]string{"keel": taskRunning, "hull": taskPending}, h.dag(), "the task that says the same is linked")
	h.status(dev, view.Running)
	h.command(dev, "COMPLETE_TASK", map[string]any{"status": "failed", "summary": "no oak"})
	require.Equal(t, map[string]string{"keel": taskFailed, "hull": taskBlocked}, h.dag())
	h.onTask("RETRY_TASK", "keel")
	require.Equal(t, map[string]string{"keel": taskReady, "hull": taskPending}, h.dag())
}

func TestTasksAreAddedTogetherOrNotAtAll(t *testing.T) {
	h := newLead(t)
	declare := func(tasks ...map[string]any) string {
		return notes(leadID, h.command(leadID, "DECLARE_TASKS", map[string]any{"tasks": tasks}))
	}
	task := func(id string, on ...string) map[string]any {
		return map[string]any{"taskId": id, "role": "developer", "dependsOn": on, "files": []string{"boat.go"}}
	}
	require.Contains(t, declare(task("a", "b"), task("b", "a")), "depend on each other")
	require.Contains(t, declare(task("a", "a")), "depends on itself")
	require.Contains(t, declare(task("a", "z")), "which there is not")
	require.Contains(t, declare(task("a"), task("a")), "is there already")
	require.Empty(t, h.dag())
	require.Contains(t, declare(task("a"), task("b")), `both change boat.go`)
	require.NotContains(t, declare(task("c", "a", "b")), `both change boat.go`)
	big := task("big")
	big["files"] = []string{}
	for i := range 400 {
		big["files"] = append(big["files"].([]string), fmt.Sprint(strings.Repeat("x", 400), i))
	}
	require.Contains(t, declare(big), "too large")
	require.Len(t, h.dag(), 3)
}

func TestDependenciesCloseNoCircle(t *testing.T) {
	h := newLead(t)
	withTasks(h)
	note := notes(leadID, h.command(leadID, "ADD_DEPENDENCY", map[string]any{"taskId": "keel", "dependsOn": []string{"hull", "none", "keel"}}))
	require.Contains(t, note, "waits for 0 more")
	h.command(leadID, "ADD_TASK", map[string]any{"taskId": "tar", "role": "developer"})
	h.command(leadID, "ADD_DEPENDENCY", map[string]any{"taskId": "keel", "dependsOn": []string{"tar"}})
	require.Equal(t, taskPending, h.dag()["keel"])
	dev := h.create(leadID, "developer", "")
	require.Contains(t, notes(dev, h.command(dev, "ADD_DEPENDENCY", map[string]any{"taskId": "hull", "dependsOn": []string{"tar"}})), "only a lead")
	secretary := h.create(leadID, "secretary", "")
	require.Contains(t, notes(secretary, h.command(secretary, "ADD_DEPENDENCY", map[string]any{"taskId": "hull", "dependsOn": []string{"tar"}})), "1 more")
}

func TestReassignedTaskIsTakenBack(t *testing.T) {
	h := newLead(t)
	withTasks(h)
	one, two := h.create(leadID, "developer", ""), h.create(leadID, "developer", "")
	assign := func(name, id string) string {
		return notes(leadID, h.command(leadID, name, map[string]any{"taskId": "keel", "agentId": id}))
	}
	require.Contains(t, assign("ASSIGN_TASK", one[:8]), "Assigned")
	require.Contains(t, assign("ASSIGN_TASK", two), "use REASSIGN_TASK")
	effects := h.command(leadID, "REASSIGN_TASK", map[string]any{"taskId": "keel", "agentId": two})
	require.Contains(t, mailOf[crewbody.Prompt](one, effects)[0].Text, "Stop working")
	require.Equal(t, []crewbody.ReleaseLocks{{AgentID: one}}, mailOf[crewbody.ReleaseLocks]("", effects), "its locks are released")
	require.Equal(t, "[DAG Task: keel] Lay the keel", mailOf[crewbody.Prompt](two, effects)[0].Text)
	require.Equal(t, cancelled, h.delegation(0).Status)
	require.Equal(t, active, h.delegation(1).Status)
	require.Contains(t, notes(two, h.command(two, "QUERY_TASKS", nil)), "keel [running]")
	require.Contains(t, notes(one, h.command(one, "COMPLETE_TASK", map[string]any{"taskId": "keel"})), "not yours")
}

// The tasks that depend on a skipped task begin, so its agent must not go on.
func TestSkippedTaskIsTakenFromItsAgent(t *testing.T) {
	h := newLead(t)
	withTasks(h)
	dev := h.create(leadID, "developer", "")
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Lay the keel", "dagTaskId": "keel"})
	h.status(dev, view.Running)
	effects := h.command(leadID, "SKIP_TASK", map[string]any{"taskId": "keel"})
	require.Equal(t, map[string]string{"keel": taskSkipped, "hull": taskReady}, h.dag())
	require.Equal(t, cancelled, h.delegation(0).Status)
	require.Contains(t, mailOf[crewbody.Prompt](dev, effects)[0].Text, `Stop working on the task "keel", and do not begin it: your lead has skipped it`)
	require.True(t, mailOf[crewbody.Prompt](dev, effects)[0].Priority)
	require.Equal(t, []crewbody.ReleaseLocks{{AgentID: dev}}, mailOf[crewbody.ReleaseLocks]("", effects), "its locks are released")
	require.Equal(t, []crewbody.Task{{}}, mailOf[crewbody.Task](dev, effects))
	require.Empty(t, statuses(h.idle(dev, "I stopped", 0)), "no report about a task that its lead has skipped")

	// Only the task is taken from an agent that has another.
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Plank the hull", "dagTaskId": "hull"})
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Caulk the seams"})
	h.status(dev, view.Running)
	h.onTask("SKIP_TASK", "hull")
	require.Equal(t, cancelled, h.delegation(1).Status)
	require.Equal(t, active, h.delegation(2).Status)
	require.Equal(t, []string{"completed"}, statuses(h.idle(dev, "done", 0)))
}

func TestRefusedSkipReleasesNoLocks(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "")
	withTasks(h)
	h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Lay the keel", "dagTaskId": "keel"})
	h.status(dev, view.Running)
	h.command(dev, "COMPLETE_TASK", nil)
	require.Equal(t, taskDone, h.dag()["keel"])
	h.by(mailbox.Repository("boats"), crewbody.LockChanged{
		Action: crewbody.LockAcquired, Repository: "boats", FilePath: "next.go", AgentID: dev,
	})
	effects := h.command(leadID, "SKIP_TASK", map[string]any{"taskId": "keel"})
	require.Contains(t, notes(leadID, effects), `SKIP_TASK error: the task "keel" is done`)
	for _, e := range effects {
		m, ok := e.(mailbox.Mail)
		require.False(t, ok && m.To == mailbox.Repository("boats"), "the agent keeps its locks")
	}
	require.Empty(t, notes(dev, effects))
}

// A task that an agent works on cannot be cancelled. The agent of one that has failed loses its locks unless it works on another.
func TestCancelledTaskReleasesTheLocksOfItsAgent(t *testing.T) {
	for name, busy := range map[string]bool{"idle": false, "with another task": true} {
		t.Run(name, func(t *testing.T) {
			h := newLead(t)
			withTasks(h)
			dev := h.create(leadID, "developer", "")
			h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Lay the keel", "dagTaskId": "keel"})
			h.status(dev, view.Running)
			h.by(mailbox.Repository("boats"), crewbody.LockChanged{
				Action: crewbody.LockAcquired, Repository: "boats", FilePath: "keel.go", AgentID: dev,
			})
			require.Contains(t, h.onTask("CANCEL_TASK", "keel"), "is running")
			h.command(dev, "COMPLETE_TASK", map[string]any{"status": "failed"})
			if busy {
				h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Caulk the seams"})
			}
			effects := h.command(leadID, "CANCEL_TASK", map[string]any{"taskId": "keel"})
			require.NotContains(t, h.dag(), "keel")
			if busy {
				require.Empty(t, mailOf[crewbody.ReleaseLocks]("", effects))
				return
			}
			require.Equal(t, []crewbody.ReleaseLocks{{AgentID: dev}}, mailOf[crewbody.ReleaseLocks]("", effects))
			require.Contains(t, notes(dev, effects), "Your locks are released")
		})
	}
}

func TestDelegationBeginsATaskOfALeadThatKeepsTasks(t *testing.T) {
	h := newLead(t)
	dev := h.create(leadID, "developer", "Caulk the seams")
	require.Empty(t, h.dag(), "this lead keeps no tasks")
	withTasks(h)
	note := notes(leadID, h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Varnish the mast", "dependsOn": []string{"keel"}}))
	require.Contains(t, note, "begins before keel is done")
	require.Len(t, h.dag(), 3)
	note = notes(leadID, h.command(leadID, "DELEGATE", map[string]any{"to": dev, "task": "Varnish the mast"}))
	require.Contains(t, note, "A similar task is delegated")
}

// The agents of other crews wait while a crew's step runs.
func TestLargeGraphOfTasksTakesLittleTime(t *testing.T) {
	h := newLead(t)
	var list []any
	for i := range maxTasks {
		var on []string
		for j := max(0, i-20); j < i; j++ {
			on = append(on, fmt.Sprint("t", j))
		}
		list = append(list, map[string]any{
			"taskId": fmt.Sprint("t", i), "role": "developer", "description": "d", "dependsOn": on, "files": []string{"keel.go"},
		})
	}
	begin := time.Now()
	h.command(leadID, "DECLARE_TASKS", map[string]any{"tasks": list})
	require.Len(t, h.state().Tasks, maxTasks)
	require.Less(t, time.Since(begin), 5*time.Second)
	e := h.command(leadID, "ADD_DEPENDENCY", map[string]any{"taskId": "t0", "dependsOn": []string{"t199"}})
	require.Contains(t, notes(leadID, e), "close a circle")
	circle := []any{
		map[string]any{"taskId": "x", "role": "developer", "dependsOn": []string{"y"}}, map[string]any{"taskId": "y", "role": "developer", "dependsOn": []string{"x"}},
	}
	h.command(leadID, "RESET_DAG", nil)
	require.Contains(t, notes(leadID, h.command(leadID, "DECLARE_TASKS", map[string]any{"tasks": circle})), "depend on each other")
}
