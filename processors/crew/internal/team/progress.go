package team

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
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
func (w *work) progress(o order, c command.Progress) string {
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
		return "" // texts and numbers
	}
	for _, m := range w.Roster.Members {
		if m.RoleId == secretaryRole && m.Id != o.from.Id && !view.Ended(m.Status) {
			w.note(m, "Progress of "+o.from.Label()+": "+string(raw))
		}
	}
	return ""
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

const (
	// nudgeEvery is how long a lead is idle while nothing moves before it is reminded.
	nudgeEvery = 2 * time.Minute
	// stalledNudges is the reminder from which people are told, and maxNudges how many there are until something moves.
	stalledNudges = 5
	maxNudges     = 12
)

// nudge reminds leads whose agents all wait while work is left. The second three reminders come half as often, the others a
// third as often.
func (w *work) nudge() {
	for _, m := range w.Roster.Members {
		d := w.duty(m)
		if !m.Lead || d.HeartbeatHalted || d.Nudges >= maxNudges || !w.stalled(m) {
			d.NudgeMs = 0
			continue
		}
		if d.NudgeMs == 0 {
			d.NudgeMs = w.now() + d.interval()
			continue
		}
		if d.NudgeMs > w.now() {
			continue
		}
		d.Nudges++
		d.NudgeMs = w.now() + d.interval()
		left := "some delegations have not ended"
		if tasks := w.digest(m.Id); tasks != nil {
			left = tasks.Summary
		}
		w.send(m.Id, crewbody.Prompt{Text: fmt.Sprintf("[System] All your agents are idle, and work is left: %s. Go on, or stop these reminders "+
			"with ⟦⟦ HALT_HEARTBEAT ⟧⟧.", left)})
		if d.Nudges >= stalledNudges {
			w.step.Event("lead:stalled", map[string]any{
				"leadId": m.Id, "nudgeCount": d.Nudges, "idleDuration": w.now() - d.IdleMs,
			})
		}
	}
}

// interval is the time to the next reminder in milliseconds.
func (d *Duty) interval() int64 { return nudgeEvery.Milliseconds() * int64(min(d.Nudges/3+1, 3)) }

// stalled reports whether a lead is idle, none of its agents works, and something is left to do.
func (w *work) stalled(lead *roster.Member) bool {
	children := w.Roster.Children(lead.Id)
	if lead.Status != view.Idle || len(children) == 0 {
		return false
	}
	for _, c := range children {
		if c.Status == view.Running || c.Status == view.Creating {
			return false
		}
	}
	open := w.delegates(lead)
	for _, t := range w.tasksOf(lead.Id) {
		switch t.Status {
		case taskRunning:
			return false
		case taskPending, taskReady, taskBlocked, taskFailed, taskInReview:
			open = true
		}
	}
	return open
}

// moved forgets the reminders of a lead: something has happened.
func (w *work) moved(leadID string) {
	if lead := w.Roster.Find(leadID); lead != nil {
		d := w.duty(lead)
		d.Nudges, d.NudgeMs = 0, 0
	}
}

// haltHeartbeat stops the reminders of a lead, or lets them come again.
func (w *work) haltHeartbeat(o order, _ command.Nothing) string {
	d, halted := w.duty(o.from), o.name == "HALT_HEARTBEAT"
	d.HeartbeatHalted, d.Nudges, d.NudgeMs = halted, 0, 0
	if halted {
		w.log(o.from, "heartbeat_halted", "Reminders are halted", nil)
		return "You get no reminders until RESUME_HEARTBEAT."
	}
	return "You get reminders again."
}
