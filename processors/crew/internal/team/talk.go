package team

import (
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
)

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
