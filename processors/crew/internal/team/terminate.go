package team

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

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
