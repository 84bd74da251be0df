package team

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// The statuses of a delegation. It begins as active and ends in one of the others.
const (
	active    = "active"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

// Bytes of a delegation in the row.
const (
	maxDelegatedTask    = 300
	maxDelegatedContext = 200
	maxResult           = 300
)

// lostAfter is how long an agent that has ended can still say what became of its work.
const lostAfter = 30 * time.Second

// delegate records that a lead gives a task to one of its agents. It returns nil if the crew has too many that have not ended.
func (w *work) delegate(lead, to *roster.Member, task, context string) *Delegation {
	if !w.delegable() {
		return nil
	}
	d := &Delegation{
		Id: w.step.NewID("del"), FromId: lead.Id, ToId: to.Id, ToRole: to.RoleName, Task: kept(task, maxDelegatedTask),
		Context: kept(context, maxDelegatedContext), Status: active, CreatedMs: w.now(),
	}
	w.Delegations = append(w.Delegations, d)
	v := viewOfDelegation(d, "")
	v.Task, v.Context = shown(task), shown(context)
	w.step.Event("agent:delegated", map[string]any{"parentId": lead.Id, "childId": to.Id, "delegation": v})
	w.moved(lead.Id)
	w.log(lead, "delegated", "Delegated to "+to.Label()+": "+truncate.Characters(task, 100), details{"to": to.Id, "delegationId": d.Id})
	return d
}

// hand tells an agent what it was given to do.
func (w *work) hand(d *Delegation, to *roster.Member, task, context string) {
	to.Task = kept(task, maxKept)
	w.fresh(w.duty(to))
	text := task
	if d.TaskId != "" {
		text = "[DAG Task: " + d.TaskId + "] " + text
	}
	if context != "" {
		text += "\n\nContext: " + context
	}
	w.send(to.Id, crewbody.Task{Task: to.Task})
	w.send(to.Id, crewbody.Prompt{Text: text, FromID: d.FromId})
	d.Sent = w.Mailbox.Sent
}

// unheard reports whether a delegation was made after an agent wrote something: heard is the number of the last input of the
// crew that the agent knew then, 0 if that is unknown.
func (d *Delegation) unheard(heard int64) bool {
	return d.Status == active && heard > 0 && d.Sent > heard
}

// unheard reports whether an agent was given something that it did not know of when it wrote something.
func (w *work) unheard(m *roster.Member, heard int64) bool {
	return slices.ContainsFunc(w.Delegations, func(d *Delegation) bool { return d.ToId == m.Id && d.unheard(heard) })
}

// delegable reports whether there is room for a delegation. The oldest that has ended makes room.
func (w *work) delegable() bool {
	return len(w.Delegations) < maxDelegations || evict(&w.Delegations, (*Delegation).over)
}

func (d *Delegation) over() bool { return d.Status != active }

// settle ends a delegation that is active.
func (w *work) settle(d *Delegation, status, result string) {
	if d.Status != active {
		return
	}
	d.Status, d.EndedMs, d.Result = status, w.now(), kept(result, maxResult)
	v := viewOfDelegation(d, "")
	v.Result = shown(result)
	w.step.Event("delegation:ended", map[string]any{"delegation": v})
}

// finish completes what an agent was given to do, as far as it has heard of it.
func (w *work) finish(m *roster.Member, result string, heard int64) {
	for _, t := range w.endWork(m, completed, result, heard) {
		w.complete(t)
	}
}

// fail fails what an agent was given to do, as far as it has heard of it.
func (w *work) fail(m *roster.Member, reason string, heard int64) {
	for _, t := range w.endWork(m, failed, reason, heard) {
		w.failTask(t, m.Label()+" "+reason)
	}
}

// endWork ends an agent's delegations and returns the tasks that the agent worked on.
func (w *work) endWork(m *roster.Member, status, result string, heard int64) (tasks []*Task) {
	var kept []string // tasks of delegations that go on
	for _, d := range w.Delegations {
		switch {
		case d.ToId != m.Id || d.Status != active:
		case d.unheard(heard):
			kept = append(kept, d.TaskId)
		default:
			w.settle(d, status, result)
		}
	}
	for _, t := range w.Tasks {
		if t.AgentId == m.Id && (t.Status == taskRunning || t.Status == taskInReview) && !slices.Contains(kept, t.Id) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// delegates reports whether a lead waits for one of its agents.
func (w *work) delegates(lead *roster.Member) bool {
	return slices.ContainsFunc(w.Delegations, func(d *Delegation) bool { return d.FromId == lead.Id && d.Status == active })
}

// relieve leaves an agent that has nothing else to do without a task, so that its next idleness is no report about one that its lead has
// taken from it.
func (w *work) relieve(m *roster.Member) {
	if m.Task != "" && !w.working(m) {
		m.Task = ""
		w.send(m.Id, crewbody.Task{})
	}
}

// lost fails the work of agents that ended without a word about it, which a lost record can cause.
func (w *work) lost() {
	for _, m := range w.Roster.Members {
		if view.Ended(m.Status) && m.EndedMs+lostAfter.Milliseconds() <= w.now() && w.working(m) {
			w.exitReport(m, m.Status, "", 1)
			w.fail(m, m.Status, 0)
		}
	}
}

// createAgent spawns a child of a lead. With a task, the lead has delegated it. The first one for which the crew has no room raises the
// crew's limit.
func (w *work) createAgent(o order, c command.CreateAgent) string {
	role := strings.ToLower(strings.TrimSpace(c.Role))
	if c.Task != "" {
		if problem := w.linkable(o.from, c.DagTaskID); problem != "" {
			return o.refused("%s", problem)
		}
		if !w.delegable() {
			return o.refused("too many delegations have not ended")
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
		return o.refused("%s", err)
	}
	warning := ""
	if d := w.newest(m); d != nil {
		warning = w.link(d, c.Task, c.DagTaskID, c.DependsOn)
		w.gather(o.from)
	}
	return fmt.Sprintf("Created %s with the ID %s.%s", m.Label(), m.Id, warning)
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
func (w *work) delegateTo(o order, c command.Delegate) string {
	to, err := w.child(o.from, c.To)
	if err != nil {
		return o.refused("%s", err)
	}
	if problem := w.linkable(o.from, c.DagTaskID); problem != "" {
		return o.refused("%s", problem)
	}
	like := w.alike(o.from, c.Task)
	d := w.delegate(o.from, to, c.Task, c.Context)
	if d == nil {
		return o.refused("too many delegations have not ended")
	}
	warning := w.link(d, c.Task, c.DagTaskID, c.DependsOn) + like
	w.hand(d, to, c.Task, c.Context)
	w.gather(o.from)
	return fmt.Sprintf("Delegated to %s.%s", to.Label(), warning)
}

// terminateAgent ends an agent below a lead, and the agents below that.
func (w *work) terminateAgent(o order, c command.TerminateAgent) string {
	m, err := named(w.descendants(o.from), c.AgentID)
	switch {
	case err != nil:
		return o.refused("%s", err)
	case view.Ended(m.Status):
		return o.refused("%s has ended already", m.Label())
	default:
		n := w.terminate(m, c.Reason)
		text := "Terminated " + m.Label()
		if n > 1 {
			text += " and the agents below it"
		}
		if m.SessionId != "" {
			text += ". Its session is " + m.SessionId
		}
		return text + "."
	}
}

// cancelDelegation cancels what a lead has delegated, by the delegation or by the agent.
func (w *work) cancelDelegation(o order, c command.CancelDelegation) string {
	agentID := ""
	if c.DelegationID == "" {
		m, err := named(w.Roster.Children(o.from.Id), c.AgentID)
		if err != nil {
			return o.refused("%s", err)
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
		return o.refused("no such delegation is active")
	}
	return fmt.Sprintf("Cancelled %d delegations.", n)
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
