package agent

import (
	"cmp"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// exited says that the process has ended.
func (a *agent) exited(c crewbody.Exited) {
	p := a.Process
	text, code := cmp.Or(p.Failed, cut(c.Error, errorLimit)), c.Code
	if code == 0 && (c.Signal != "" || p.Failed != "" || c.Error != "" && !c.Stopped) {
		code = 1
	}
	switch {
	case p.Failed != "":
		a.ended(code, text, crewbody.ExitStart)
	case c.Stopped:
		a.ended(code, text, crewbody.ExitHostStopped)
	case code == 0:
		a.ended(code, text, crewbody.ExitClean)
	default:
		a.ended(code, text, crewbody.ExitCrash)
	}
}

// ended ends the process. It is called once for each.
func (a *agent) ended(code int, text, cause string) {
	p, knew := a.Process, a.knew()
	if a.Terminated || a.Restarts {
		cause = crewbody.ExitTerminated
	}
	if a.Turn != nil && !(a.Turn.Begun && a.CanLoad) {
		a.Refreshed = "" // the next process may not know the prompt
	}
	if cause == crewbody.ExitHostStopped {
		a.takeBack()
	}
	open := a.Turn != nil
	a.closeTurn()
	a.asked().CancelAll(a.step, a.who(), topics.CauseParentEnded, false)
	a.Process = nil
	a.ExitCode, a.ExitError = int32(code), text
	a.step.Event("agent:exit", exit{a.id(), code, text})
	restarting := false
	switch cause {
	case crewbody.ExitClean:
		a.Phase, a.Crashes = phaseStopped, 0
	case crewbody.ExitTerminated:
		a.Phase, a.Crashes, restarting = phaseStopped, 0, a.Restarts
	case crewbody.ExitHostStopped:
		a.Phase, a.AwaitsHost, restarting = phaseStarting, true, true
		// The next process may get no turn in its place. If it does, deliver clears this.
		a.Unreported = a.Unreported || open
	default:
		restarting = a.crashed(code, p.FailedStage == crewbody.StageResume)
	}
	a.IdleMs = 0
	if cause != crewbody.ExitHostStopped && cause != crewbody.ExitStart {
		a.busy()
	}
	if cause != crewbody.ExitHostStopped { // the agent goes on with its session, and with its locks
		a.releaseLocks()
	}
	a.reportExit(code, cause, restarting, knew)
	if cause == crewbody.ExitTerminated && !restarting {
		a.step.Event("agent:terminated", about{a.id()})
	}
	switch {
	case a.Restarts:
		a.startAgain()
	case !restarting:
		a.end("the agent has ended")
	}
}

// crashed counts a crash, and reports whether the crew is to be asked for a restart. A session that cannot be continued is no
// better the next time.
func (a *agent) crashed(code int, noSession bool) (restarting bool) {
	a.Phase = phaseError
	a.Crashes++
	a.step.Event("agent:crashed", exit{AgentID: a.id(), Code: code})
	switch {
	case noSession:
		a.CanLoad = false
	case a.Crashes >= a.MaxRestarts:
		a.step.Event("agent:restart_limit", about{a.id()})
	case !a.NoRestart:
		a.RestartMs = a.step.NowMS() + a.config.RestartDelay.Milliseconds()
		a.RemovedMs = a.step.NowMS() + shownFor.Milliseconds()
		return true
	}
	return false
}

// reportExit tells the crew.
func (a *agent) reportExit(code int, cause string, restarting bool, heard int64) {
	a.step.Send(a.crew(), crewbody.AgentExited{
		AgentID: a.id(), Code: code, Cause: cause, Error: a.ExitError, Crashes: int(a.Crashes), Restarting: restarting,
		Output: a.Output, Heard: heard,
	})
}

// releaseLocks has the repository release what the agent has locked. It does not answer the agent's open commands then.
func (a *agent) releaseLocks() {
	a.Awaited = nil
	if r := a.Member.Repository; r != "" {
		a.step.Send(mailbox.Repository(r), crewbody.AgentEnded{AgentID: a.id()})
	}
}

// end ends an agent that has no process and gets none.
func (a *agent) end(reason string) {
	a.RestartMs, a.RestartAsked, a.AwaitsHost, a.Restarts = 0, false, false, false
	a.HostEpoch = 0 // the host does not say when it starts anew
	a.RemovedMs = a.step.NowMS() + shownFor.Milliseconds()
	a.drop(reason)
}

// terminate ends the agent.
func (a *agent) terminate(c crewbody.Terminate) {
	if a.Terminated && !a.Restarts || !Live(a.State) {
		return
	}
	a.Terminated, a.Restarts = true, false
	a.RestartMs, a.RestartAsked, a.AwaitsHost = 0, false, false
	a.drop("the agent was terminated")
	if a.Process != nil {
		a.stop(cmp.Or(cut(c.Reason, errorLimit), "terminated"))
		return
	}
	a.Phase, a.Crashes = phaseStopped, 0
	a.releaseLocks()
	a.reportExit(int(a.ExitCode), crewbody.ExitTerminated, false, 0)
	a.step.Event("agent:terminated", about{a.id()})
	a.end("")
}

// stop has the host end the process.
func (a *agent) stop(reason string) {
	p := a.Process
	a.busy()
	a.Phase = phaseStopping
	if p.Stopping {
		return
	}
	p.Stopping = true
	a.asked().CancelAll(a.step, a.who(), topics.CauseParentEnded, true)
	a.do(crewbody.Stop{AgentID: a.id(), Run: p.Run, Reason: reason})
	if p.Silent { // a host that comes back ends the process
		a.ended(1, neverEnds, crewbody.ExitTerminated)
	}
}

// restart is the crew's answer for a crashed agent, or a person's wish.
func (a *agent) restart(c crewbody.Restart) {
	if !c.Manual && !a.RestartAsked {
		return
	}
	if c.Prompt != "" {
		a.FirstPrompt = cut(c.Prompt, firstLimit)
	}
	switch {
	case !c.Manual && c.Refused:
		a.end("the agent is not restarted")
	case !c.Manual:
		a.start()
		a.step.Event("agent:auto_restarted", restarted{a.id(), int(a.Crashes), a.id()})
	case a.Process != nil:
		a.Terminated, a.Restarts = false, true
		a.stop("restarted")
	case a.AwaitsHost:
		a.Crashes = 0
	default:
		a.startAgain()
	}
}

// startAgain starts the agent for a person.
func (a *agent) startAgain() {
	a.Crashes = 0
	a.start()
	a.step.Event("agent:restarted", restarted{AgentID: a.id(), Previous: a.id()})
}
