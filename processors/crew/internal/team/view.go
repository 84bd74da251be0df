package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Delegations returns the delegations of a crew, oldest first. Texts are cut.
func Delegations(s *State) []view.Delegation { return viewsOf(s, s.GetDelegations(), viewOfDelegation) }

// Decisions returns the decisions of a crew, oldest first.
func Decisions(s *State) []view.Decision { return viewsOf(s, s.GetDecisions(), viewOfDecision) }

// Tasks returns the tasks of a crew's leads in the order in which they were declared.
func Tasks(s *State) []view.Task { return viewsOf(s, s.GetTasks(), viewOfTask) }

// Activities returns the newest activities of a crew, oldest first.
func Activities(s *State) []view.Activity { return viewsOf(s, s.GetActivities(), viewOfActivity) }

func viewsOf[S, V any](s *State, list []S, of func(of S, project string) V) []V {
	views := make([]V, len(list))
	for i, v := range list {
		views[i] = of(v, s.GetRoster().GetProjectId())
	}
	return views
}

func viewOfDelegation(d *Delegation, _ string) view.Delegation {
	return view.Delegation{
		ID: d.Id, FromAgentID: d.FromId, ToAgentID: d.ToId, ToRole: d.ToRole, Task: d.Task, Context: d.Context, Status: d.Status,
		CreatedAt: view.Time(d.CreatedMs), CompletedAt: instant(d.EndedMs), Result: d.Result,
	}
}

func (w *work) decision(d *Decision) view.Decision { return viewOfDecision(d, w.Roster.ProjectId) }

func viewOfDecision(d *Decision, project string) view.Decision {
	v := view.Decision{
		ID: d.Id, AgentID: d.AgentId, AgentRole: d.Role, LeadID: optional(d.LeadId), ProjectID: optional(project), Title: d.Title,
		Rationale: d.Rationale, NeedsConfirmation: d.NeedsConfirmation, Status: d.Status, AutoApproved: d.AutoApproved,
		Timestamp: view.Time(d.CreatedMs), Category: d.Category,
	}
	if d.Status == confirmed {
		v.ConfirmedAt = optional(instant(d.ResolvedMs))
	}
	return v
}

func viewOfTask(t *Task, project string) view.Task {
	return view.Task{
		ID: t.Id, LeadID: t.LeadId, ProjectID: project, Role: t.Role, Title: t.Title, Description: t.Description,
		Files: append([]string{}, t.Files...), DependsOn: append([]string{}, t.DependsOn...), DagStatus: t.Status,
		Priority: int(t.Priority), AssignedAgentID: t.AgentId, FailureReason: t.Failure, CreatedAt: view.Time(t.CreatedMs),
		StartedAt: instant(t.StartedMs), CompletedAt: instant(t.EndedMs),
	}
}

func viewOfActivity(a *Activity, project string) view.Activity {
	v := view.Activity{
		ID: a.Id, AgentID: a.AgentId, AgentRole: a.RoleId, ActionType: a.Action, Summary: a.Summary, Details: a.Details,
		Timestamp: view.Time(a.AtMs), ProjectID: project,
	}
	if len(v.Details) == 0 {
		v.Details = topics.Raw("{}")
	}
	return v
}

// agent is a member as its row knows it.
func (w *work) agent(m *roster.Member) view.Agent {
	children := []string{}
	for _, c := range w.Roster.Children(m.Id) {
		children = append(children, c.Id)
	}
	return view.Agent{
		ID: m.Id, Role: topics.CrewRole{ID: m.RoleId, Name: m.RoleName}, Status: m.Status, Phase: phaseOf(m), Task: m.Task,
		ParentID: m.ParentId, ChildIDs: children, CreatedAt: view.Time(m.CreatedMs), SessionID: optional(m.SessionId), CrewID: w.id,
		ProjectName: w.Roster.ProjectName, ProjectID: w.Roster.ProjectId, Model: m.Model, Cwd: m.Cwd, ContextWindowSize: m.ContextSize,
		ContextWindowUsed: m.ContextUsed, PendingMessages: int(m.Pending), IsSubLead: m.Lead && m.ParentId != "",
		HierarchyLevel: int(m.Level), Provider: m.Provider,
	}
}

// phaseOf is the phase that follows from a status. The agent's row knows it better.
func phaseOf(m *roster.Member) string {
	switch m.Status {
	case view.Creating:
		return "starting"
	case view.Running, view.Idle:
		return m.Status
	case view.Failed:
		return "error"
	default:
		return "stopped"
	}
}

// instant is a time, or empty for none.
func instant(ms int64) string {
	if ms == 0 {
		return ""
	}
	return view.Time(ms)
}

// optional is a text, or nil for none.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
