package team

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// completeTask ends what an agent was given to do, or a task of a lead's own graph.
func (w *work) completeTask(o order, c command.CompleteTask) {
	given := o.from.ParentId != "" && w.mine(o.from, c.TaskID)
	if o.from.Lead && !given {
		w.completeOwn(o, c)
		return
	}
	if c.TaskID != "" && !given {
		w.refuse(o, "the task %q is not yours", truncate.Characters(c.TaskID, shownID))
		return
	}
	result := c.Summary
	if result == "" {
		result = c.Output
	}
	if didFail(c.Status) {
		w.report(o.from, "failed its task", "failed", result)
		w.fail(o.from, "said that it failed", o.heard)
	} else {
		w.report(o.from, "completed its task", "completed", result)
		w.finish(o.from, result, o.heard)
	}
	w.duty(o.from).Completed = !w.unheard(o.from, o.heard)
	w.log(o.from, "task_completed", "Completed: "+truncate.Characters(result, 100), nil)
	w.answer(o, "Your parent has your report.")
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
func (w *work) completeOwn(o order, c command.CompleteTask) {
	if c.TaskID == "" {
		w.refuse(o, "a lead says which task: taskId is needed")
		return
	}
	t := w.asked(o, o.from.Id, c.TaskID, nil)
	if t == nil {
		return
	}
	ok := false
	if didFail(c.Status) {
		ok = w.failTask(t, truncate.Characters(c.Summary, maxName))
	} else {
		ok = w.complete(t)
	}
	if !ok {
		w.refuse(o, "the task %q is %s", t.Id, t.Status)
		return
	}
	w.log(o.from, "task_completed", "Completed the task "+t.Id, details{"taskId": t.Id})
	w.answer(o, "The task %q is %s.", t.Id, t.Status)
}

// didFail reports whether an agent says that it did not do its task.
func didFail(status string) bool {
	switch strings.ToLower(strings.TrimSpace(status)) {
	case "failed", "failure", "error", "blocked":
		return true
	}
	return false
}
