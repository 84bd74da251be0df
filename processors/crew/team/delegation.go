package team

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/view"
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
	maxDelegatedTask    = 600
	maxDelegatedContext = 200
	maxResult           = 600
)

// lostAfter is how long an agent that has ended can still say what became of its work.
const lostAfter = 30 * time.Second

// delegate records that a lead gave a task to one of its agents. It returns nil if the crew has too many that have not ended.
func (w *work) delegate(lead, to *roster.Member, task, context, taskID string) *Delegation {
	if !w.delegable() {
		return nil
	}
	d := &Delegation{
		Id: w.step.NewID("del"), FromId: lead.Id, ToId: to.Id, ToRole: to.RoleName, Task: kept(task, maxDelegatedTask),
		Context: kept(context, maxDelegatedContext), Status: active, CreatedMs: w.now(), TaskId: taskID,
	}
	w.Delegations = append(w.Delegations, d)
	v := viewOfDelegation(d)
	v.Task, v.Context = shown(task), shown(context)
	w.step.Event("agent:delegated", map[string]any{"parentId": lead.Id, "childId": to.Id, "delegation": v})
	w.log(lead, "delegated", "Delegated to "+label(to)+": "+first(task, 100), details{"to": to.Id, "delegationId": d.Id})
	return d
}

// delegable reports whether there is room for a delegation. The oldest that has ended makes room.
func (w *work) delegable() bool {
	if len(w.Delegations) < maxDelegations {
		return true
	}
	i := slices.IndexFunc(w.Delegations, func(d *Delegation) bool { return d.Status != active })
	if i < 0 {
		return false
	}
	w.Delegations = slices.Delete(w.Delegations, i, i+1)
	return true
}

// settle ends a delegation that is active.
func (w *work) settle(d *Delegation, status, result string) {
	if d.Status != active {
		return
	}
	d.Status, d.EndedMs, d.Result = status, w.now(), kept(result, maxResult)
	v := viewOfDelegation(d)
	v.Result = shown(result)
	w.step.Event("delegation:ended", map[string]any{"delegation": v})
}

// finish completes all that an agent was given to do.
func (w *work) finish(m *roster.Member, result string) {
	for _, d := range w.Delegations {
		if d.ToId == m.Id {
			w.settle(d, completed, result)
		}
	}
	if t := w.running(m); t != nil {
		w.complete(t)
	}
}

// fail fails all that an agent was given to do.
func (w *work) fail(m *roster.Member, reason string) {
	for _, d := range w.Delegations {
		if d.ToId == m.Id {
			w.settle(d, failed, reason)
		}
	}
	if t := w.running(m); t != nil {
		w.failTask(t, label(m)+" "+reason)
	}
}

// delegates reports whether a lead waits for one of its agents.
func (w *work) delegates(lead *roster.Member) bool {
	return slices.ContainsFunc(w.Delegations, func(d *Delegation) bool { return d.FromId == lead.Id && d.Status == active })
}

// lost fails the work of agents that ended without a word about it, which a lost record can cause.
func (w *work) lost() {
	for _, m := range w.Roster.Members {
		if view.Ended(m.Status) && m.EndedMs+lostAfter.Milliseconds() <= w.now() && w.working(m) {
			w.exitReport(m, m.Status, "", 1)
			w.fail(m, m.Status)
		}
	}
}
