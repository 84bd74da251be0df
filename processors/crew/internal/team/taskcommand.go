package team

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// maxTaskText is the bytes of a task's description in the row.
const maxTaskText = 500

// declare adds tasks to a lead's graph: all or none.
func (w *work) declare(o order, list ...command.Task) string {
	var added []*Task
	for _, c := range list {
		switch {
		case w.task(o.from.Id, c.TaskID) != nil || slices.ContainsFunc(added, func(t *Task) bool { return t.Id == c.TaskID }):
			return o.refused("the task %q is there already", c.TaskID)
		case slices.Contains(c.DependsOn, c.TaskID):
			return o.refused("the task %q depends on itself", c.TaskID)
		}
		status := taskPending
		if s := strings.ToLower(c.Status); s == taskDone || s == taskSkipped {
			status = s
		}
		added = append(added, &Task{
			Id: c.TaskID, LeadId: o.from.Id, Role: strings.ToLower(c.Role), Description: kept(c.Description, maxTaskText), Files: c.Files,
			DependsOn: slices.Compact(slices.Sorted(slices.Values(c.DependsOn))), Status: status,
			Priority: int32(min(max(c.Priority, -1000), 1000)), CreatedMs: w.now(),
		})
	}
	if !w.roomFor(added) {
		return o.refused("the graph of tasks would be too large")
	}
	before := w.Tasks
	w.Tasks = append(slices.Clip(w.Tasks), added...)
	if problem := w.broken(o.from.Id, added); problem != "" {
		w.Tasks = before
		return o.refused("%s", problem)
	}
	w.promote(o.from.Id)
	w.dagUpdated(o.from.Id)
	w.note(o.from, fmt.Sprintf("Added %d tasks.%s", len(added), w.conflicts(o.from.Id, added)))
	w.announce(o.from.Id, slices.DeleteFunc(slices.Clone(added), func(t *Task) bool { return t.Status != taskReady }))
	return ""
}

// roomFor reports whether the row has room for more tasks.
func (w *work) roomFor(added []*Task) bool {
	return len(w.Tasks)+len(added) <= maxTasks && size(w.Tasks)+size(added) <= maxTaskBytes
}

// broken says what is wrong with the dependencies of new tasks, empty if nothing is.
func (w *work) broken(leadID string, added []*Task) string {
	list := w.graph(leadID)
	for _, t := range added {
		for _, id := range t.DependsOn {
			if list[id] == nil {
				return fmt.Sprintf("the task %q depends on %q, which there is not", t.Id, id)
			}
		}
		if !reach(list, t.Id)[t.Id] {
			continue
		}
		i := slices.IndexFunc(t.DependsOn, func(id string) bool { return reach(list, id)[t.Id] })
		return fmt.Sprintf("the tasks %q and %q depend on each other", t.Id, t.DependsOn[i])
	}
	return ""
}

// conflicts names the new tasks that change a file that another task changes at the same time. A graph can have hundreds of tasks
// with hundreds of files, so what a task depends on is found once.
func (w *work) conflicts(leadID string, added []*Task) (text string) {
	list := w.graph(leadID)
	below := map[string]map[string]bool{}
	for id := range list {
		below[id] = reach(list, id)
	}
	for _, t := range added {
		files := map[string]bool{}
		for _, f := range t.Files {
			files[f] = true
		}
		for _, o := range w.tasksOf(leadID) {
			if o.Id == t.Id || below[t.Id][o.Id] || below[o.Id][t.Id] {
				continue
			}
			i := slices.IndexFunc(o.Files, func(f string) bool { return files[f] })
			if i >= 0 && len(text) < maxKept {
				text += fmt.Sprintf("\nThe tasks %q and %q both change %s.", t.Id, o.Id, o.Files[i])
			}
		}
	}
	return text
}

// move changes the status of a task for its lead.
func (w *work) move(o order, taskID string, m move) string {
	t, refusal := w.asked(o, o.from.Id, taskID, m.from)
	if t == nil {
		return refusal
	}
	before := w.ready(o.from.Id)
	if m.to == taskSkipped {
		w.free(t, "your lead has skipped it")
	}
	w.apply(t, m)
	w.note(o.from, fmt.Sprintf("The task %q is %s.", t.Id, t.Status))
	w.announce(o.from.Id, slices.DeleteFunc(w.ready(o.from.Id), func(r *Task) bool { return r == t || slices.Contains(before, r) }))
	return ""
}

// asked returns the task of a lead that a command names, in one of the statuses unless they are nil, or the refusal of the command.
func (w *work) asked(o order, leadID, taskID string, statuses []string) (t *Task, refusal string) {
	t = w.task(leadID, taskID)
	switch {
	case t == nil:
		return nil, o.refused("there is no task %q", truncate.Characters(taskID, shownID))
	case statuses != nil && !slices.Contains(statuses, t.Status):
		return nil, o.refused("the task %q is %s", t.Id, t.Status)
	}
	return t, ""
}

// cancelTask removes a task. Tasks that depend on it do not wait for it any more.
func (w *work) cancelTask(o order, c command.TaskID) string {
	t, refusal := w.asked(o, o.from.Id, c.TaskID, cancellable)
	if t == nil {
		return refusal
	}
	w.free(t, "your lead has cancelled it")
	w.Tasks = slices.DeleteFunc(w.Tasks, func(x *Task) bool { return x == t })
	for _, x := range w.tasksOf(t.LeadId) {
		x.DependsOn = slices.DeleteFunc(x.DependsOn, func(id string) bool { return id == t.Id })
	}
	w.promote(t.LeadId)
	w.dagUpdated(t.LeadId)
	return fmt.Sprintf("The task %q is cancelled.", t.Id)
}

// addDependency makes a task wait for others: for its lead, the agent that it is assigned to, or a secretary.
func (w *work) addDependency(o order, c command.AddDependency) string {
	leadID := w.leadOf(o.from)
	t, refusal := w.asked(o, leadID, c.TaskID, nil)
	switch {
	case t == nil:
		return refusal
	case !o.from.Lead && o.from.RoleId != secretaryRole && t.AgentId != o.from.Id:
		return o.refused("only a lead, a secretary or the agent of the task may do this")
	}
	var added, skipped []string
	for _, id := range c.DependsOn {
		bounded := size(w.Tasks)+len(id) <= maxTaskBytes
		if w.task(leadID, id) == nil || slices.Contains(t.DependsOn, id) || w.depends(leadID, id, t.Id) || !bounded {
			skipped = append(skipped, id)
			continue
		}
		t.DependsOn = append(t.DependsOn, id)
		added = append(added, id)
	}
	if len(added) > 0 {
		if t.Status == taskReady {
			t.Status = taskPending
		}
		w.promote(leadID)
		w.dagUpdated(leadID)
	}
	text := fmt.Sprintf("The task %q waits for %d more.", t.Id, len(added))
	if len(skipped) > 0 {
		text += " Left out, because they are unknown, there already or would close a circle: " + truncate.Characters(strings.Join(skipped, ", "), maxName)
	}
	return text
}

// assign gives a task to a child. REASSIGN_TASK takes it from another agent, which loses its locks.
func (w *work) assign(o order, c command.AssignTask) string {
	t, refusal := w.asked(o, o.from.Id, c.TaskID, nil)
	if t == nil {
		return refusal
	}
	to, err := w.child(o.from, c.AgentID)
	switch {
	case err != nil:
		return o.refused("%s", err)
	case t.AgentId == to.Id && t.Status == taskRunning:
		return o.refused("%s works on the task %q already", to.Label(), t.Id)
	case o.name == "ASSIGN_TASK" && t.Status == taskRunning:
		return o.refused("another agent works on the task %q: use REASSIGN_TASK", t.Id)
	case t.Status != taskRunning && !slices.Contains(starting.from, t.Status):
		return o.refused("the task %q is %s", t.Id, t.Status)
	case !w.delegable():
		return o.refused("too many delegations have not ended")
	}
	if t.Status == taskRunning {
		w.takeBack(t, "another agent has it now")
	}
	d := w.delegate(o.from, to, t.Description, "")
	t.AgentId = to.Id
	w.apply(t, starting)
	d.TaskId = t.Id
	w.hand(d, to, t.Description, "")
	return fmt.Sprintf("Assigned the task %q to %s.", t.Id, to.Label())
}

// free releases the locks of the agent of a task that its lead skips or cancels. An agent that works on the task is told to stop. One
// that has stopped keeps its locks if it works on something else.
func (w *work) free(t *Task, why string) {
	if t.Status == taskRunning {
		w.takeBack(t, why)
		return
	}
	m := w.Roster.Find(t.AgentId)
	if m == nil || view.Ended(m.Status) || w.working(m) || len(w.Roster.LocksOf(m.Id)) == 0 {
		return
	}
	w.unlock(m)
	w.note(m, fmt.Sprintf("Your locks are released. You worked on the task %q: %s.", t.Id, why))
}

// unlock releases all locks of an agent that goes on.
func (w *work) unlock(m *roster.Member) {
	if m.Repository != "" {
		w.step.Send(mailbox.Repository(m.Repository), crewbody.ReleaseLocks{AgentID: m.Id})
	}
}

// takeBack takes a task from the agent that works on it: its delegation is cancelled, it is told to stop, and its locks are released.
func (w *work) takeBack(t *Task, why string) {
	for _, d := range w.Delegations {
		if d.FromId == t.LeadId && d.ToId == t.AgentId && d.TaskId == t.Id {
			w.settle(d, cancelled, "")
		}
	}
	if m := w.Roster.Find(t.AgentId); m != nil && !view.Ended(m.Status) {
		w.send(m.Id, crewbody.Prompt{
			Text:     fmt.Sprintf("[System] Stop working on the task %q, and do not begin it: %s. Your locks are released.", t.Id, why),
			Priority: true,
		})
		w.unlock(m)
		w.relieve(m)
	}
	t.Status, t.AgentId = taskReady, ""
}

// listTasks answers with the tasks of an agent's lead.
func (w *work) listTasks(o order, _ command.Nothing) string {
	leadID := w.leadOf(o.from)
	var b strings.Builder
	if d := w.digest(leadID); d != nil {
		b.WriteString(d.Summary)
	} else {
		b.WriteString("There are no tasks.")
	}
	for _, t := range w.tasksOf(leadID) {
		fmt.Fprintf(&b, "\n- %s [%s] (%s) %s", t.Id, t.Status, t.Role, truncate.Characters(t.Description, 80))
		if t.AgentId != "" {
			b.WriteString(" — @" + view.ShortID(t.AgentId))
		}
		if len(t.DependsOn) > 0 {
			b.WriteString(" after " + truncate.Characters(strings.Join(t.DependsOn, ", "), maxName))
		}
		if t.Failure != "" {
			b.WriteString(" — " + t.Failure)
		}
	}
	return b.String()
}

// resetTasks drops a lead's tasks and cancels what it has delegated.
func (w *work) resetTasks(o order, _ command.Nothing) string {
	for _, d := range w.Delegations {
		if d.FromId == o.from.Id && d.Status == active {
			w.cancel(d)
		}
	}
	n := len(w.Tasks)
	w.Tasks = slices.DeleteFunc(w.Tasks, func(t *Task) bool { return t.LeadId == o.from.Id })
	w.dagUpdated(o.from.Id)
	return fmt.Sprintf("Dropped %d tasks.", n-len(w.Tasks))
}
