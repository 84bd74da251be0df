package team

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// restartDue decides whether a crashed agent is restarted: not if its parent is gone, or if it was ended meanwhile.
func (w *work) restartDue(m *roster.Member, _ crewbody.RestartDue) {
	parent := w.Roster.Find(m.ParentId)
	orphan := m.ParentId != "" && (parent == nil || view.Ended(parent.Status))
	if orphan || w.duty(m).Terminating {
		w.send(m.Id, crewbody.Restart{Refused: true})
		if w.working(m) {
			w.exitReport(m, view.Failed, "", 1)
		}
		w.fail(m, "not restarted", 0)
		w.end(m, view.Failed)
		return
	}
	w.revive(m)
	w.send(m.Id, crewbody.Restart{})
}

// restartAsked restarts an agent that a person wants restarted, also one that has ended.
func (w *work) restartAsked(in crewbody.RestartAsked) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		w.problem("There is no such agent in the crew.")
		return
	}
	if view.Ended(m.Status) && len(w.unended()) >= w.limit() {
		w.step.Event("agent:spawn_error", map[string]any{"agentId": m.Id, "message": "the crew has reached its limit of agents"})
		return
	}
	w.revive(m)
	w.send(m.Id, crewbody.Restart{Manual: true})
	w.send(m.Id, crewbody.Pause{Paused: w.Settings.Paused}) // the crew may have been paused or resumed since it ended
	w.log(m, "status_change", "Restarted "+m.Label(), details{"by": kept(in.By, maxName)})
}

// revive makes an agent a member that is about to start.
func (w *work) revive(m *roster.Member) {
	ended := view.Ended(m.Status)
	m.Status, m.EndedMs = view.Creating, 0
	d := w.duty(m)
	d.Restarting, d.Terminating = false, false
	w.fresh(d)
	if ended {
		w.joined(m)
	}
}

// fresh forgets what was reported about an agent before it ran again.
func (w *work) fresh(d *Duty) {
	d.IdleReported, d.ExitReported, d.Completed, d.Spoke = false, false, false, false
}
