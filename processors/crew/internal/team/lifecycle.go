package team

import (
	"cmp"
	"fmt"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// changed takes over what an agent says about itself.
func (w *work) changed(m *roster.Member, in crewbody.AgentChanged) {
	d := w.duty(m)
	if in.SessionID != "" {
		m.SessionId = kept(in.SessionID, maxName)
	}
	if in.Model != "" {
		m.Model = kept(in.Model, maxName)
	}
	m.ContextUsed, m.ContextSize = in.ContextUsed, in.ContextSize
	if d.Terminating {
		return // it does not know yet
	}
	m.Pending, m.Resuming = int32(min(max(in.Pending, 0), 1<<20)), in.Resuming
	switch {
	case in.Status == m.Status || in.Status == "":
	case view.Ended(in.Status):
		if !d.Restarting {
			w.end(m, in.Status)
		}
	case in.Status == view.Running:
		w.fresh(d)
		d.Restarting = false
		w.moved(m.ParentId)
		w.live(m, view.Running)
	case in.Status == view.Idle:
		d.Restarting, d.IdleMs = false, w.now()
		w.live(m, view.Idle)
	case in.Status == view.Creating:
		w.live(m, view.Creating)
	}
}

// live sets the status of an agent that has not ended.
func (w *work) live(m *roster.Member, status string) {
	ended := view.Ended(m.Status)
	m.Status, m.EndedMs = status, 0
	if ended { // a person restarted it, and the crew was not asked
		w.joined(m)
	}
}

// exited does what follows from the end of an agent's process.
func (w *work) exited(m *roster.Member, in crewbody.AgentExited) {
	d := w.duty(m)
	switch {
	case d.Terminating:
		w.end(m, view.Terminated) // everything was reported when it was told to end
		return
	case in.Restarting && (in.Cause == crewbody.ExitHostStopped || in.Cause == crewbody.ExitStart):
		// The agent is not to blame, or had not begun. It keeps its work.
		d.Restarting = true
		m.Status = view.Creating
		return
	}
	status, code := outcomeOf(in)
	if status == view.Failed {
		w.log(m, "error", fmt.Sprintf("%s exited with code %d (%s)", m.Label(), code, in.Cause), details{"crashes": in.Crashes})
		w.attention("agent_crashed", w.Roster.LeadOf(m))
	}
	late := w.unheard(m, in.Heard)
	if done := status == view.Completed && !late && (d.IdleReported || d.Completed || w.released(m)); !done {
		w.exitReport(m, status, in.Output, code)
	}
	if status == view.Completed {
		w.finish(m, in.Output, in.Heard)
		w.fail(m, "exited before it knew of the task", 0)
	} else {
		w.fail(m, reasonOf(status, code), 0)
	}
	if in.Restarting {
		d.Restarting = true
		m.Status = view.Creating
		return
	}
	w.end(m, status)
}

// outcomeOf is what an exit makes of an agent, with an exit code that is 0 only for a clean end.
func outcomeOf(in crewbody.AgentExited) (status string, code int) {
	switch {
	case in.Cause == crewbody.ExitTerminated:
		return view.Terminated, in.Code
	case in.Cause == crewbody.ExitClean && in.Code == 0:
		return view.Completed, 0
	case in.Code == 0:
		return view.Failed, 1
	default:
		return view.Failed, in.Code
	}
}

// reasonOf is what the report about an exit says.
func reasonOf(status string, code int) string {
	switch status {
	case view.Completed:
		return "completed successfully"
	case view.Terminated:
		return "terminated"
	default:
		return fmt.Sprintf("failed (exit code %d)", code)
	}
}

// idle does what follows from the end of a turn with nothing left to do.
func (w *work) idle(m *roster.Member, in crewbody.AgentIdle) {
	d := w.duty(m)
	if d.Terminating || view.Ended(m.Status) {
		return
	}
	m.SessionId = cmp.Or(m.SessionId, kept(in.SessionID, maxName))
	answered := in.Heard > 0 && d.Noted > in.Heard
	if !answered && !w.unheard(m, in.Heard) { // else another turn follows
		w.idleReport(m, in)
	}
}

// terminateAsked ends the agent that a person wants ended.
func (w *work) terminateAsked(in crewbody.TerminateAsked) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		w.problem("There is no such agent in the crew.")
		return
	}
	w.terminate(m, in.Reason)
}

// terminate ends an agent and its children, children first. It returns how many it ended. Reports about what they did not
// finish are made now, so that none is lost with an agent that never answers.
func (w *work) terminate(m *roster.Member, reason string) int {
	return w.terminateAll(m, kept(reason, maxName), map[string]bool{})
}

func (w *work) terminateAll(m *roster.Member, reason string, seen map[string]bool) (n int) {
	if seen[m.Id] {
		return 0
	}
	seen[m.Id] = true
	for _, c := range w.Roster.Children(m.Id) {
		n += w.terminateAll(c, reason, seen)
	}
	if view.Ended(m.Status) {
		return n
	}
	d := w.duty(m)
	d.Terminating, d.Restarting = true, false
	w.log(m, "agent_terminated", "Terminated "+m.Label(), details{"reason": reason})
	w.exitReport(m, view.Terminated, "", 0)
	w.fail(m, "terminated", 0)
	w.end(m, view.Terminated)
	w.send(m.Id, crewbody.Terminate{Reason: reason})
	return n + 1
}

// end marks an agent as ended.
func (w *work) end(m *roster.Member, status string) {
	if view.Ended(m.Status) {
		m.Status = status
		return
	}
	m.Status, m.EndedMs, m.Pending, m.Resuming = status, w.now(), 0, false
	w.duty(m).Restarting = false
	m.Task = kept(m.Task, maxKeptEnded)
	w.left(m)
}

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
