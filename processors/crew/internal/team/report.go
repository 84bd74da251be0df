package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Characters of a report.
const (
	reportedTask   = 150
	reportedOutput = 4000
)

// idleReport tells an agent's parent that the agent has finished, once until it runs again, and ends what the agent had to do.
// A lead that waits for its own agents has not finished.
func (w *work) idleReport(m *roster.Member, in crewbody.AgentIdle) {
	d := w.duty(m)
	if m.ParentId == "" || m.Resuming || d.IdleReported || d.Completed || w.delegates(m) || w.released(m) {
		return
	}
	if m.Task == "" && !w.working(m) {
		return
	}
	d.IdleReported = true
	w.report(m, "finished", "completed", in.Output)
	w.finish(m, in.Output, 0)
}

// released reports whether an agent's lead has ended the agent's task for it, and nothing else is left to do.
func (w *work) released(m *roster.Member) bool {
	over := slices.ContainsFunc(w.Tasks, func(t *Task) bool { return t.AgentId == m.Id && t.Status == taskDone })
	return over && w.running(m) == nil && !w.working(m)
}

// exitReport tells an agent's parent that the agent's process has ended, once until it runs again.
func (w *work) exitReport(m *roster.Member, status, output string, code int) {
	d := w.duty(m)
	if d.ExitReported {
		return
	}
	d.ExitReported = true
	reason := reasonOf(status, code)
	w.report(m, reason, reason, output)
}

// report sends a report to an agent's parent, and tells people.
func (w *work) report(m *roster.Member, what, status, output string) {
	parent := w.Roster.Find(m.ParentId)
	if parent == nil {
		return
	}
	var b strings.Builder
	b.WriteString("[Agent Report]")
	if t := w.running(m); t != nil {
		fmt.Fprintf(&b, " [%s]", t.Id)
	}
	fmt.Fprintf(&b, " %s %s.", m.Label(), what)
	if m.Task != "" {
		b.WriteString("\nTask: " + truncate.Characters(m.Task, reportedTask))
	}
	if m.SessionId != "" {
		b.WriteString("\nSession: " + m.SessionId)
	}
	if w.duty(m).Spoke {
		b.WriteString("\nThe agent sent messages itself.")
	}
	if output != "" {
		b.WriteString("\nOutput:\n" + truncate.Last(output, reportedOutput))
	}
	if !view.Ended(parent.Status) {
		w.send(parent.Id, crewbody.Prompt{Text: b.String()})
	}
	w.say(m, parent, b.String())
	w.step.Event("agent:completion_reported", map[string]any{"childId": m.Id, "parentId": parent.Id, "status": status})
}

// attention tells people that something needs them.
func (w *work) attention(trigger, leadID string) {
	fields := map[string]any{"trigger": trigger}
	if leadID != "" {
		fields["leadId"] = leadID
	}
	w.step.Event("attention:changed", fields)
}

// completeTask ends what an agent was given to do, or a task of a lead's own graph.
func (w *work) completeTask(o order, c command.CompleteTask) string {
	given := o.from.ParentId != "" && w.mine(o.from, c.TaskID)
	if o.from.Lead && !given {
		return w.completeOwn(o, c)
	}
	if c.TaskID != "" && !given {
		return o.refused("the task %q is not yours", truncate.Characters(c.TaskID, shownID))
	}
	result := cmp.Or(c.Summary, c.Output)
	if didFail(c.Status) {
		w.report(o.from, "failed its task", "failed", result)
		w.fail(o.from, "said that it failed", o.heard)
	} else {
		w.report(o.from, "completed its task", "completed", result)
		w.finish(o.from, result, o.heard)
	}
	w.duty(o.from).Completed = !w.unheard(o.from, o.heard)
	w.log(o.from, "task_completed", "Completed: "+truncate.Characters(result, 100), nil)
	return "Your parent has your report."
}

// mine reports whether an agent was given a task, or, without an ID, anything.
func (w *work) mine(m *roster.Member, taskID string) bool {
	if taskID == "" {
		return !m.Lead || w.working(m)
	}
	t := w.task(m.ParentId, taskID)
	return t != nil && t.AgentId == m.Id
}

// completeOwn ends a task of a lead's graph.
func (w *work) completeOwn(o order, c command.CompleteTask) string {
	if c.TaskID == "" {
		return o.refused("a lead says which task: taskId is needed")
	}
	t, refusal := w.asked(o, o.from.Id, c.TaskID, nil)
	if t == nil {
		return refusal
	}
	ok := false
	if didFail(c.Status) {
		ok = w.failTask(t, truncate.Characters(c.Summary, maxName))
	} else {
		ok = w.complete(t)
	}
	if !ok {
		return o.refused("the task %q is %s", t.Id, t.Status)
	}
	w.log(o.from, "task_completed", "Completed the task "+t.Id, details{"taskId": t.Id})
	return fmt.Sprintf("The task %q is %s.", t.Id, t.Status)
}

// didFail reports whether an agent says that it did not do its task.
func didFail(status string) bool {
	switch strings.ToLower(strings.TrimSpace(status)) {
	case "failed", "failure", "error", "blocked":
		return true
	}
	return false
}

// joined tells the crew of an agent that begins.
func (w *work) joined(m *roster.Member) {
	w.Talk.Spawned(w.step, w.Roster, m)
	w.Refresh.Trigger(w.step, "")
}

// left tells the crew of an agent that has ended.
func (w *work) left(m *roster.Member) {
	w.Talk.Ended(w.step, w.Roster, m)
	w.Refresh.Trigger(w.step, "")
}

// talks executes a command by which an agent says something to others. It returns false for other commands.
func (w *work) talks(m *roster.Member, name string, cmd any) bool {
	did, handled := w.Talk.Command(w.step, w.Roster, m, name, cmd)
	for _, e := range did {
		w.duty(m).Spoke = true
		raw, _ := json.Marshal(e.Details, json.Deterministic(true)) // texts and numbers
		w.record(m, e.ActionType, e.Summary, raw)
	}
	return handled
}

// say records what one agent says to another in the name of the crew.
func (w *work) say(from, to *roster.Member, content string) {
	w.Talk.Post(w.step, talk.PartyOf(from), talk.PartyOf(to), talk.Response, shown(content))
}

// gather gives agents with the same work a group.
func (w *work) gather(lead *roster.Member) {
	var list []talk.Assignment
	for _, d := range w.Delegations {
		if d.FromId == lead.Id && d.Status == active {
			list = append(list, talk.Assignment{AgentID: d.ToId, Task: d.Task})
		}
	}
	w.Talk.AutoGroup(w.step, w.Roster, lead, list)
}

// news is what a CREW_UPDATE says beside the roster.
func (w *work) news() manifest.News {
	list := make([]manifest.Activity, len(w.Activities))
	for i, a := range w.Activities {
		var kind struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(a.Details, &kind) // an agent's details may be anything
		list[i] = manifest.Activity{
			AtMS: a.AtMs, AgentID: a.AgentId, RoleID: a.RoleId, Type: a.Action, Summary: a.Summary, Detail: kind.Type,
		}
	}
	return manifest.News{Activities: list, Health: w.health}
}

// health counts the work of the lead of an agent.
func (w *work) health(viewer *roster.Member) (h manifest.Health) {
	for _, t := range w.tasksOf(w.leadOf(viewer)) {
		h.Tasks++
		switch t.Status {
		case taskDone, taskSkipped:
			h.Done++
		case taskBlocked, taskFailed:
			h.Stuck++
		}
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && d.NeedsConfirmation {
			h.Decisions++
		}
	}
	return h
}
