package team

import (
	"errors"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// createAgent spawns a child of a lead. With a task, the lead has delegated it. The first one for which the crew has no room raises the
// crew's limit.
func (w *work) createAgent(o order, c command.CreateAgent) {
	role := strings.ToLower(strings.TrimSpace(c.Role))
	if c.Task != "" {
		if problem := w.linkable(o.from, c.DagTaskID); problem != "" {
			w.refuse(o, "%s", problem)
			return
		}
		if !w.delegable() {
			w.refuse(o, "too many delegations have not ended")
			return
		}
	}
	asked := crewbody.SpawnAsked{
		AgentID: w.newAgentID(), RoleID: role, ParentID: o.from.Id, Task: c.Task, Context: c.Context, Model: c.Model,
		Provider: c.Provider, Cwd: o.from.Cwd, By: o.from.Id,
	}
	m, err := w.spawn(asked)
	if errors.Is(err, errLimit) && w.raiseLimit(o.from) {
		m, err = w.spawn(asked)
	}
	if err != nil {
		w.step.Event("agent:spawn_error", map[string]any{"agentId": o.from.Id, "message": err.Error()})
		w.refuse(o, "%s", err)
		return
	}
	warning := ""
	if d := w.newest(m); d != nil {
		warning = w.link(d, c.Task, c.DagTaskID, c.DependsOn)
		w.gather(o.from)
	}
	w.answer(o, "Created %s with the ID %s.%s", m.Label(), m.Id, warning)
}

// newest returns the newest delegation of an agent.
func (w *work) newest(m *roster.Member) (d *Delegation) {
	for _, o := range w.Delegations {
		if o.ToId == m.Id {
			d = o
		}
	}
	return d
}

// delegateTo gives a lead's child a task.
func (w *work) delegateTo(o order, c command.Delegate) {
	to, err := w.child(o.from, c.To)
	if err != nil {
		w.refuse(o, "%s", err)
		return
	}
	if problem := w.linkable(o.from, c.DagTaskID); problem != "" {
		w.refuse(o, "%s", problem)
		return
	}
	like := w.alike(o.from, c.Task)
	d := w.delegate(o.from, to, c.Task, c.Context)
	if d == nil {
		w.refuse(o, "too many delegations have not ended")
		return
	}
	warning := w.link(d, c.Task, c.DagTaskID, c.DependsOn) + like
	w.hand(d, to, c.Task, c.Context)
	w.gather(o.from)
	w.answer(o, "Delegated to %s.%s", to.Label(), warning)
}

// terminateAgent ends an agent below a lead, and the agents below that.
func (w *work) terminateAgent(o order, c command.TerminateAgent) {
	m, err := named(w.descendants(o.from), c.AgentID)
	switch {
	case err != nil:
		w.refuse(o, "%s", err)
	case view.Ended(m.Status):
		w.refuse(o, "%s has ended already", m.Label())
	default:
		n := w.terminate(m, c.Reason)
		text := "Terminated " + m.Label()
		if n > 1 {
			text += " and the agents below it"
		}
		if m.SessionId != "" {
			text += ". Its session is " + m.SessionId
		}
		w.answer(o, "%s.", text)
	}
}

// cancelDelegation cancels what a lead has delegated, by the delegation or by the agent.
func (w *work) cancelDelegation(o order, c command.CancelDelegation) {
	agentID := ""
	if c.DelegationID == "" {
		m, err := named(w.Roster.Children(o.from.Id), c.AgentID)
		if err != nil {
			w.refuse(o, "%s", err)
			return
		}
		agentID = m.Id
	}
	n := 0
	for _, d := range w.Delegations {
		if d.FromId == o.from.Id && d.Status == active && (d.Id == c.DelegationID || c.DelegationID == "" && d.ToId == agentID) {
			w.cancel(d)
			n++
		}
	}
	if n == 0 {
		w.refuse(o, "no such delegation is active")
		return
	}
	w.answer(o, "Cancelled %d delegations.", n)
}

// cancel cancels a delegation. What waits for its agent is dropped.
func (w *work) cancel(d *Delegation) {
	w.settle(d, cancelled, "")
	lead := w.Roster.Find(d.FromId)
	if t := w.task(d.FromId, d.TaskId); t != nil && t.AgentId == d.ToId {
		w.failTask(t, "the delegation was cancelled")
	}
	if to := w.Roster.Find(d.ToId); to != nil && !view.Ended(to.Status) {
		w.send(to.Id, crewbody.ClearQueue{})
		w.relieve(to)
		w.note(to, "Your task was cancelled. Stop working on it: "+truncate.Characters(d.Task, reportedTask))
	}
	if lead != nil {
		w.log(lead, "delegation_cancelled", "Cancelled: "+truncate.Characters(d.Task, 100), details{"delegationId": d.Id, "to": d.ToId})
	}
}
