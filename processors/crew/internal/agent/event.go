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
	crashed struct {
		AgentID string `json:"agentId"`
		Code    int    `json:"code"`
	}
	autoRestarted struct {
		AgentID  string `json:"agentId"`
		Crashes  int    `json:"crashCount"`
		Previous string `json:"previousAgentId"` // an agent keeps its ID
	}
	restarted struct {
		AgentID  string `json:"agentId"`
		Previous string `json:"previousAgentId"`
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
