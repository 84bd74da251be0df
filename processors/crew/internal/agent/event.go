package agent

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// The fields of events.
type (
	about struct {
		AgentID string `json:"agentId"`
	}
	spawned struct {
		Agent view.Agent `json:"agent"`
	}
	status struct {
		AgentID string `json:"agentId"`
		Status  string `json:"status"`
	}
	sessionReady struct {
		AgentID     string     `json:"agentId"`
		SessionID   string     `json:"sessionId"`
		Modes       topics.Raw `json:"modes,omitzero"`
		CurrentMode string     `json:"currentModeId,omitzero"`
	}
	resumeFailed struct {
		AgentID   string `json:"agentId"`
		Requested string `json:"requestedSessionId"`
		Error     string `json:"error"`
	}
	spawnError struct {
		AgentID string `json:"agentId"`
		Message string `json:"message"`
	}
	exit struct {
		AgentID string `json:"agentId"`
		Code    int    `json:"code"`
		Error   string `json:"error,omitzero"`
	}
	restarted struct {
		AgentID  string `json:"agentId"`
		Crashes  int    `json:"crashCount,omitzero"`
		Previous string `json:"previousAgentId"` // an agent keeps its ID
	}
	hung struct {
		AgentID string `json:"agentId"`
		Elapsed int64  `json:"elapsedMs"`
	}
	responseEnd struct {
		AgentID    string `json:"agentId"`
		Outcome    string `json:"outcome"`
		StopReason string `json:"stopReason,omitzero"` // as the agent sent it
		Error      string `json:"error,omitzero"`
	}
	autopilot struct {
		AgentID string `json:"agentId"`
		On      bool   `json:"autopilot"`
	}
)

// tell tells clients and the crew what has changed since they were told. They are told of an idle agent when IdleMs has passed.
func (a *agent) tell() {
	now := a.status()
	if now == view.Idle && a.IdleMs != 0 {
		now = a.ToldStatus // not for long enough
	}
	if now != a.ToldStatus {
		a.step.Event("agent:status", status{a.id(), now})
	}
	resuming := a.Phase == phaseResuming
	if now == a.ToldStatus && a.SessionId == a.ToldSession && a.Member.Model == a.ToldModel && resuming == a.ToldResuming {
		return
	}
	a.ToldStatus, a.ToldSession, a.ToldModel, a.ToldResuming = now, a.SessionId, a.Member.Model, resuming
	a.step.Send(a.crew(), crewbody.AgentChanged{
		AgentID: a.id(), Status: now, SessionID: a.SessionId, Model: a.Member.Model, ContextUsed: a.Transcript.GetUsed(),
		ContextSize: a.Transcript.GetSize(),
		Pending:     a.waiting(), Resuming: resuming,
	})
}

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

// The phases of an agent. Its status follows from them.
const (
	phaseStarting = "starting"
	phaseResuming = "resuming"
	phaseIdle     = "idle"
	phaseRunning  = "running"
	phaseThinking = "thinking"
	phaseStopping = "stopping"
	phaseStopped  = "stopped"
	phaseError    = "error"
)

// status is what clients and the crew see of the phase. An agent that was ended on request is terminated whatever its
// process's exit code is.
func (s *State) status() string {
	switch s.phase() {
	case phaseStarting:
		return view.Creating
	case phaseResuming, phaseRunning, phaseThinking:
		return view.Running
	case phaseIdle:
		return view.Idle
	case phaseStopped:
		if s.ExitCode == 0 && !s.Terminated {
			return view.Completed
		}
		return view.Terminated
	case phaseError:
		return view.Failed
	default:
		if s.Restarts {
			return view.Creating // it is not to end
		}
		return view.Terminated
	}
}

// phase is the phase for clients. An agent that waits for its host is one that is being started, until the host says more.
func (s *State) phase() string {
	if s.Process.GetSilent() {
		return phaseStarting
	}
	return s.Phase
}

// Live reports whether an agent has not ended for good: it has a process, or will get one. Its status may be failed while it
// waits for its restart.
func Live(s *State) bool {
	return s.GetMember() != nil && (s.Process != nil || s.AwaitsHost || s.RestartMs != 0 || s.RestartAsked)
}
