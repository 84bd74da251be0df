package team

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// digest is the state of a lead's tasks in a report of progress.
type digest struct {
	Summary    string   `json:"summary"`
	Completed  []string `json:"completed"`
	InProgress []string `json:"in_progress"`
	Blocked    []string `json:"blocked"` // failed ones included
}

type progressed struct {
	AgentID string   `json:"agentId"`
	Summary string   `json:"summary,omitzero"`
	Percent *float64 `json:"percent,omitzero"`
	Status  string   `json:"status,omitzero"`
	// What the agent says about its own work.
	Completed  []string `json:"completed,omitzero"`
	InProgress []string `json:"in_progress,omitzero"`
	Blocked    []string `json:"blocked,omitzero"`
	Dag        *digest  `json:"dag,omitzero"`
}

// progress tells people, and the secretaries of the crew, how far an agent is, with the state of its lead's tasks.
func (w *work) progress(o order, c command.Progress) {
	p := progressed{AgentID: o.from.Id, Summary: shown(c.Summary), Status: c.Status, Dag: w.digest(w.leadOf(o.from))}
	p.Completed, p.InProgress, p.Blocked = shownAll(c.Completed), shownAll(c.InProgress), shownAll(c.Blocked)
	if c.Percent != nil {
		n := float64(*c.Percent)
		p.Percent = &n
	}
	if p.Summary == "" && p.Dag != nil {
		p.Summary = p.Dag.Summary
	}
	w.step.Event("lead:progress", p)
	w.log(o.from, "progress_update", truncate.Characters(p.Summary, maxSummary), nil)
	raw, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return // texts and numbers
	}
	for _, m := range w.Roster.Members {
		if m.RoleId == secretaryRole && m.Id != o.from.Id && !view.Ended(m.Status) {
			w.note(m, "Progress of "+o.from.Label()+": "+string(raw))
		}
	}
}

func shownAll(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, truncate.Characters(text, maxSummary))
	}
	return list
}

// digest returns the state of a lead's tasks, nil if it has none.
func (w *work) digest(leadID string) *digest {
	d := &digest{Completed: []string{}, InProgress: []string{}, Blocked: []string{}}
	done, tasks := 0, w.tasksOf(leadID)
	for _, t := range tasks {
		switch t.Status {
		case taskDone:
			d.Completed = append(d.Completed, t.Id)
			done++
		case taskSkipped:
			done++
		case taskRunning, taskInReview:
			d.InProgress = append(d.InProgress, t.Id)
		case taskBlocked, taskFailed:
			d.Blocked = append(d.Blocked, t.Id)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	d.Summary = fmt.Sprintf("%d/%d tasks complete", done, len(tasks))
	return d
}
