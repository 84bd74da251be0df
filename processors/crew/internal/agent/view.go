package agent

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// View returns what clients see of an agent. key is the key of the row. The role has ID and name only, and the agent no children:
// the crew's row knows them. It returns the zero Agent for a row without an agent.
func View(key string, s *State) view.Agent {
	m := s.GetMember()
	if m == nil {
		return view.Agent{}
	}
	t := s.Transcript
	v := view.Agent{
		ID: key, Role: topics.CrewRole{ID: m.RoleId, Name: m.RoleName}, Status: s.status(), Phase: s.phase(), Task: s.Task,
		ParentID: s.ParentId, ChildIDs: []string{}, CreatedAt: view.Time(s.CreatedMs), OutputPreview: s.Preview,
		Modes: t.GetModes(), CurrentMode: t.GetCurrentMode(), Plan: t.GetPlan(), ToolCalls: t.ToolCalls(), CrewID: m.CrewId, ProjectID: m.ProjectId, Model: m.Model, Cwd: m.Cwd,
		InputTokens: t.GetInputTokens(), OutputTokens: t.GetOutputTokens(), ContextWindowSize: t.GetSize(),
		ContextWindowUsed: t.GetUsed(), PendingMessages: s.waiting(), IsSubLead: s.Lead && s.ParentId != "",
		HierarchyLevel: int(s.Level), Provider: m.Provider, ExitError: s.ExitError, Autopilot: s.Autopilot,
		Permissions: s.Permissions.Open(),
	}
	if s.SessionId != "" {
		v.SessionID = &s.SessionId
	}
	return v
}
