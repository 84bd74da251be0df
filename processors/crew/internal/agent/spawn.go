package agent

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

// spawn makes an agent and starts it. An agent that has ended and is spawned again is a new one with the same ID.
func (a *agent) spawn(c crewbody.Spawn) {
	if Live(a.State) {
		return
	}
	if memberSize(c) > memberLimit {
		a.step.DeadLetter(reasonLong)
		return
	}
	box := a.Mailbox
	proto.Reset(a.State)
	m, id := c.Member, mailbox.ID(a.step.Subject)
	a.Mailbox = box
	a.Member = &Member{
		AgentId: id, CrewId: m.CrewID, ProjectId: m.ProjectID, RoleId: m.RoleID, RoleName: m.RoleName, Model: m.Model,
		Provider: m.Provider, Host: m.Host, Cwd: m.Cwd, Repository: m.Repository,
	}
	a.CreatedMs = a.step.NowMS()
	a.Task, a.ParentId, a.Level, a.Lead = cut(c.Task, taskLimit), c.ParentID, int32(c.Level), c.Lead
	a.Autopilot, a.NoRestart = c.Autopilot, c.NoRestart
	a.MaxRestarts = int32(cmp.Or(c.MaxRestarts, restartLimit))
	a.FirstPrompt = cut(c.Prompt, firstLimit)
	// Whether the session can be continued is for the host to find out: there was no process that said so.
	a.SessionId, a.CanLoad = c.SessionID, c.SessionID != ""
	a.step.CrewID, a.step.ProjectID = m.CrewID, m.ProjectID
	a.start()
	a.ToldStatus, a.ToldSession, a.ToldModel = a.status(), a.SessionId, m.Model // the crew knows them
	a.step.Event("agent:spawned", spawned{View(id, a.State)})
}

// memberSize is the size of what a spawn says about who the agent is.
func memberSize(c crewbody.Spawn) (size int) {
	m := c.Member
	for _, text := range []string{
		m.CrewID, m.ProjectID, m.RoleID, m.RoleName, m.Model, m.Provider, m.Host, m.Cwd, m.Repository, c.ParentID, c.SessionID,
	} {
		size += jsonSize(text)
	}
	return size
}

// start has the host start a process.
func (a *agent) start() {
	a.Terminated, a.ExitCode, a.ExitError, a.RemovedMs = false, 0, "", 0
	a.RestartMs, a.RestartAsked, a.AwaitsHost, a.Restarts = 0, false, false, false
	p := &Process{AskedMs: a.step.NowMS()}
	if a.CanLoad {
		p.Resumes = a.SessionId
	}
	if p.Resumes == "" {
		a.newSession()
	}
	a.Process, a.Phase = p, phaseStarting
	p.Run = a.step.Do(a.Member.Host, a.HostEpoch, a.startAction())
}

func (a *agent) startAction() crewbody.Start {
	m := a.Member
	return crewbody.Start{AgentID: m.AgentId, Provider: m.Provider, Model: m.Model, Cwd: m.Cwd, SessionID: a.Process.Resumes}
}

// started says that the process runs.
func (a *agent) started(c crewbody.Started) {
	var can struct {
		LoadSession bool `json:"loadSession"`
	}
	a.CanLoad = json.Unmarshal(c.Capabilities, &can) == nil && can.LoadSession
	if len(c.Root)+len(c.Below) <= nameLimit {
		a.Member.Root, a.Member.Below = c.Root, c.Below
	}
	if a.Process.Resumes != "" && a.Phase == phaseStarting {
		a.Phase = phaseResuming
	}
}

// sessionReady sends the first prompt of a new session, or what waits for a continued one.
func (a *agent) sessionReady(c crewbody.SessionReady) {
	p := a.Process
	if p.Ready || p.Stopping {
		return
	}
	if len(c.SessionID) > nameLimit {
		a.step.DeadLetter(reasonLong)
		return
	}
	p.Ready, p.OutputMs = true, a.step.NowMS()
	if p.Resumes != "" && (!c.Resumed || c.SessionID != p.Resumes) {
		a.newSession()
	}
	a.SessionId = c.SessionID
	a.rest(a.Unreported)
	a.record().SessionReady(c.Modes, c.Options)
	a.FirstDue = a.FirstPrompt != "" && (a.FirstDue || !c.Resumed)
	a.step.Event("agent:session_ready", sessionReady{a.id(), c.SessionID, a.record().Modes, a.record().CurrentMode})
	a.deliver()
}

// newSession forgets what belongs to the agent's earlier session.
func (a *agent) newSession() {
	a.Parser, a.Awaited = nil, nil // offsets count within a session
	a.Refreshed = ""
	a.record().NewSession()
}

// startFailed says that there is no session. The process, if there is one, is still to end.
func (a *agent) startFailed(c crewbody.StartFailed) {
	p := a.Process
	if p.Failed != "" || p.Ready {
		return
	}
	reason := cut(cmp.Or(c.Error, "the agent could not be started"), errorLimit)
	p.Failed, p.FailedStage = reason, c.Stage
	switch {
	case p.Stopping: // it is to end anyway
	case c.Stage == crewbody.StageResume:
		a.step.Event("agent:session_resume_failed", resumeFailed{a.id(), p.Resumes, reason})
	default:
		a.step.Event("agent:spawn_error", spawnError{a.id(), reason})
	}
	if !c.Process {
		a.ended(1, reason, crewbody.ExitStart)
	}
}

// problem is shown to people.
func (a *agent) problem(c crewbody.Problem) {
	a.heardOutput()
	a.step.Event("agent:problem", spawnError{a.id(), cut(c.Message, errorLimit)})
}

func (a *agent) beat(crewbody.HostBeat) { a.active() }

// receipt is a host's answer to an action that it did not do.
func (a *agent) receipt(c crewbody.Receipt) {
	p := a.Process
	switch {
	case p == nil || !c.Failed:
	case c.ActionID == p.Run && p.HeardMs == 0:
		a.heardHost()
		a.startFailed(crewbody.StartFailed{Run: p.Run, Stage: crewbody.StageProcess, Error: c.Error})
	case c.ActionID == a.Turn.GetPromptId():
		a.turnEnded(crewbody.TurnEnded{Run: p.Run, PromptID: c.ActionID, Error: cmp.Or(c.Error, "the prompt was not sent")})
	}
}
