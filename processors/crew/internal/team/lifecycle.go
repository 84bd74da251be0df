package team

import (
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
	if m.SessionId == "" {
		m.SessionId = kept(in.SessionID, maxName)
	}
	answered := in.Heard > 0 && d.Noted > in.Heard
	if !answered && !w.unheard(m, in.Heard) { // else another turn follows
		w.idleReport(m, in)
	}
}
