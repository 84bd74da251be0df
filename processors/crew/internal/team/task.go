package team

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// The statuses of a task.
const (
	taskPending  = "pending"
	taskReady    = "ready"
	taskRunning  = "running"
	taskInReview = "in_review"
	taskDone     = "done"
	taskFailed   = "failed"
	taskBlocked  = "blocked"
	taskPaused   = "paused"
	taskSkipped  = "skipped"
)

// move is a change of a task's status: to a status, from those that allow it.
type move struct {
	to   string
	from []string
}

var (
	completing = move{taskDone, []string{taskRunning, taskPaused, taskReady, taskInReview}}
	failing    = move{taskFailed, []string{taskRunning, taskInReview}}
	starting   = move{taskRunning, []string{taskPending, taskReady, taskBlocked, taskPaused, taskFailed, taskInReview}}
)

// moves are those that leads command.
var moves = map[string]move{
	"PAUSE_TASK":  {taskPaused, []string{taskPending, taskReady}},
	"RESUME_TASK": {taskPending, []string{taskPaused}},
	"RETRY_TASK":  {taskReady, []string{taskFailed}},
	"REOPEN_TASK": {taskPending, []string{taskDone}},
	"SKIP_TASK":   {taskSkipped, []string{taskPending, taskReady, taskRunning, taskBlocked, taskPaused, taskFailed}},
	"FORCE_READY": {taskReady, []string{taskPending, taskBlocked}},
}

// cancellable are the statuses in which a task can be removed.
var cancellable = []string{taskPending, taskReady, taskBlocked, taskPaused, taskFailed, taskSkipped}

// tasksOf returns the tasks of a lead.
func (w *work) tasksOf(leadID string) []*Task {
	return slices.DeleteFunc(slices.Clone(w.Tasks), func(t *Task) bool { return t.LeadId != leadID })
}

// task returns a task of a lead.
func (w *work) task(leadID, id string) *Task { return w.graph(leadID)[id] }

// running returns the task that an agent works on, nil if there is none.
func (w *work) running(m *roster.Member) *Task {
	for _, t := range w.Tasks {
		if t.AgentId == m.Id && (t.Status == taskRunning || t.Status == taskInReview) {
			return t
		}
	}
	return nil
}

// apply changes the status of a task, and what follows from it for the tasks that depend on it. It returns false if the status
// does not allow it.
func (w *work) apply(t *Task, m move) bool {
	if !slices.Contains(m.from, t.Status) {
		return false
	}
	t.Status = m.to
	switch m.to {
	case taskRunning:
		t.StartedMs, t.EndedMs, t.Failure = w.now(), 0, ""
	case taskDone, taskSkipped, taskFailed:
		t.EndedMs = w.now()
	case taskReady, taskPending:
		t.AgentId, t.StartedMs, t.EndedMs, t.Failure = "", 0, 0, ""
	}
	w.promote(t.LeadId)
	w.dagUpdated(t.LeadId)
	return true
}

// promote brings the tasks that wait up to date with those that they depend on: a task with a failed dependency is blocked,
// one whose dependencies are all done is ready.
func (w *work) promote(leadID string) {
	tasks, status := w.tasksOf(leadID), map[string]string{}
	for _, t := range tasks {
		status[t.Id] = t.Status
	}
	for _, t := range tasks {
		if t.Status == taskPending || t.Status == taskBlocked {
			t.Status = waiting(t, status)
		}
	}
}

// waiting is the status of a task that has not begun, given those of its lead's tasks.
func waiting(t *Task, status map[string]string) string {
	met, broken := true, false
	for _, id := range t.DependsOn {
		switch status[id] {
		case taskDone, taskSkipped, "": // "": it was removed
		case taskFailed:
			broken = true
		default:
			met = false
		}
	}
	switch {
	case broken:
		return taskBlocked
	case met:
		return taskReady
	default:
		return taskPending
	}
}

// complete ends a task as done, and tells its lead which tasks can begin.
func (w *work) complete(t *Task) bool {
	before := w.ready(t.LeadId)
	if !w.apply(t, completing) {
		return false
	}
	w.announce(t.LeadId, slices.DeleteFunc(w.ready(t.LeadId), func(r *Task) bool { return slices.Contains(before, r) }))
	return true
}

// failTask ends a task as failed. The tasks that depend on it directly are blocked.
func (w *work) failTask(t *Task, reason string) bool {
	if !slices.Contains(failing.from, t.Status) {
		return false
	}
	for _, o := range w.tasksOf(t.LeadId) {
		if o.Status == taskReady && slices.Contains(o.DependsOn, t.Id) {
			o.Status = taskPending // and blocked below
		}
	}
	w.apply(t, failing)
	t.Failure = kept(reason, maxName)
	w.attention("dag", t.LeadId)
	return true
}

// ready returns the tasks of a lead that can begin.
func (w *work) ready(leadID string) []*Task {
	return slices.DeleteFunc(w.tasksOf(leadID), func(t *Task) bool { return t.Status != taskReady })
}

// dagUpdated tells people that a lead's tasks have changed.
func (w *work) dagUpdated(leadID string) {
	w.step.Event("dag:updated", map[string]any{"leadId": leadID})
}

// depends reports whether a task depends on another of its lead, directly or not.
func (w *work) depends(leadID, id, on string) bool {
	return id == on || reach(w.graph(leadID), id)[on]
}

// graph returns the tasks of a lead by their IDs.
func (w *work) graph(leadID string) map[string]*Task {
	list := map[string]*Task{}
	for _, t := range w.tasksOf(leadID) {
		list[t.Id] = t
	}
	return list
}

// reach returns the IDs of what a task depends on, directly or not. One that depends on itself is among them.
func reach(list map[string]*Task, id string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{id}; len(todo) > 0; {
		t := list[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		for _, on := range t.GetDependsOn() {
			if !seen[on] {
				seen[on] = true
				todo = append(todo, on)
			}
		}
	}
	return seen
}

// toldTask is a task as people know it.
type toldTask struct{ id, state string }

// toldTasks returns the tasks as they were before a step.
func (w *work) toldTasks() (told []toldTask) {
	for _, t := range w.Tasks {
		told = append(told, toldTask{t.Id, stateOf(t)})
	}
	return told
}

func stateOf(t *Task) string {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		panic("crew: encode a task: " + err.Error())
	}
	return string(raw)
}

// tellTasks tells people which tasks have changed in a step, and which are gone. IDs are unique among the tasks of a lead, so a state,
// which names the lead, is that of one task.
func (w *work) tellTasks(before []toldTask) {
	same, left := map[string]bool{}, map[string]bool{}
	for _, t := range before {
		same[t.state] = true
	}
	for _, t := range w.Tasks {
		left[t.Id] = true
		if !same[stateOf(t)] {
			w.step.Event("task:updated", map[string]any{"task": viewOfTask(t, w.Roster.GetProjectId())})
		}
	}
	for _, t := range before {
		if !left[t.id] {
			left[t.id] = true
			w.step.Event("task:removed", map[string]any{"taskId": t.id})
		}
	}
}

// announce tells a lead which of its tasks can begin.
func (w *work) announce(leadID string, list []*Task) {
	lead := w.Roster.Find(leadID)
	if len(list) == 0 || lead == nil || view.Ended(lead.Status) {
		return
	}
	lines := make([]string, len(list))
	for i, t := range list {
		lines[i] = "- " + t.Id + " (" + t.Role + "): " + truncate.Characters(t.Description, 80)
	}
	w.note(lead, "Tasks that can begin now:\n"+strings.Join(lines, "\n"))
}
