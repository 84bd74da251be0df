package team

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// How much two texts have in common, from 0 to 1.
const (
	alikeWarned  = 0.6  // two delegations: the lead is told
	alikeChosen  = 0.3  // a delegation and a task that can begin: it is that task
	alikeSame    = 0.95 // a delegation and a task of the same role: it is that task
	alikeSimilar = 0.8  // a delegation and a task of the same role: the lead is told
)

// linkable says why a task cannot be the one that a lead delegates, empty if it can. No ID is fine.
func (w *work) linkable(lead *roster.Member, taskID string) string {
	if taskID == "" {
		return ""
	}
	t := w.task(lead.Id, taskID)
	switch {
	case t == nil:
		return fmt.Sprintf("there is no task %q", truncate.Characters(taskID, shownID))
	case !slices.Contains(starting.from, t.Status):
		return fmt.Sprintf("the task %q is %s", t.Id, t.Status)
	}
	return ""
}

// link finds the task of the lead's graph that a delegation stands for, and starts it: the one that the lead names, the one
// that says the same, or a new one if the lead keeps tasks. It returns what the lead should know.
func (w *work) link(d *Delegation, text, taskID string, dependsOn []string) (warning string) {
	t := w.task(d.FromId, taskID)
	if t == nil {
		t, warning = w.choose(d, text, dependsOn)
	}
	if t == nil || !slices.Contains(starting.from, t.Status) {
		return warning
	}
	var open []string
	for _, id := range t.DependsOn {
		if o := w.task(d.FromId, id); o != nil && o.Status != taskDone && o.Status != taskSkipped {
			open = append(open, o.Id)
		}
	}
	if len(open) > 0 {
		warning += fmt.Sprintf(" The task %q begins before %s is done.", t.Id, strings.Join(open, ", "))
	}
	t.AgentId = d.ToId
	w.apply(t, starting)
	d.TaskId = t.Id
	return warning
}

// choose returns the task that a delegation without a named one stands for, nil if it stands for none.
func (w *work) choose(d *Delegation, text string, dependsOn []string) (*Task, string) {
	to := w.Roster.Find(d.ToId)
	var best, like *Task
	tasks := w.tasksOf(d.FromId)
	chosen, similar := alikeChosen, alikeSimilar
	for _, t := range tasks {
		if t.Role != to.RoleId {
			continue
		}
		score := likeness(text, t.Title+" "+t.Description)
		switch {
		case t.Status == taskReady && score >= chosen:
			best, chosen = t, score
		case t.Status != taskDone && t.Status != taskSkipped && t.Status != taskFailed && score >= similar:
			like, similar = t, score
		}
	}
	switch {
	case best != nil:
		return best, ""
	case like != nil && similar > alikeSame:
		return like, fmt.Sprintf(" It is the task %q.", like.Id)
	case len(tasks) == 0 && len(dependsOn) == 0:
		return nil, ""
	}
	t := &Task{
		Id: w.step.NewID("auto"), LeadId: d.FromId, Role: to.RoleId, Description: kept(text, maxTaskText), Status: taskPending,
		DependsOn: w.known(d.FromId, dependsOn), CreatedMs: w.now(),
	}
	if !w.roomFor([]*Task{t}) {
		return nil, " There is no room for another task in your graph of tasks."
	}
	w.Tasks = append(w.Tasks, t)
	if like != nil {
		return t, fmt.Sprintf(" The task %q is similar.", like.Id)
	}
	return t, ""
}

// known returns those of some IDs that are of tasks of a lead, each once.
func (w *work) known(leadID string, ids []string) (list []string) {
	for _, id := range ids {
		if w.task(leadID, id) != nil && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// alike returns a warning if a lead has delegated a similar task that has not ended.
func (w *work) alike(lead *roster.Member, text string) string {
	for _, d := range w.Delegations {
		if d.FromId == lead.Id && d.Status == active && likeness(d.Task, kept(text, maxDelegatedTask)) > alikeWarned {
			return fmt.Sprintf(" A similar task is delegated to @%s.", d.ToId[:min(8, len(d.ToId))])
		}
	}
	return ""
}

// likeness is the share of the words of two texts that both have.
func likeness(a, b string) float64 {
	x, y := wordsOf(a), wordsOf(b)
	both := 0
	for word := range x {
		if y[word] {
			both++
		}
	}
	if all := len(x) + len(y) - both; all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(strings.ToLower(truncate.Characters(text, 2000))) {
		words[strings.Trim(word, ".,;:!?\"'()")] = true
	}
	return words
}
