package agent

import "github.com/turntable-streams/turntable/topics"

// hostStarted says that the host runs anew: it has no process of an earlier run.
func (a *agent) hostStarted(c topics.CrewHostStarted) {
	if c.Host != a.Member.Host || c.Epoch <= a.HostEpoch || !Live(a.State) {
		return
	}
	a.HostEpoch = c.Epoch
	p := a.Process
	switch {
	case a.AwaitsHost:
		a.start()
	case p == nil: // it waits for its restart
	case p.HeardMs != 0:
		a.ended(1, "the host was started anew", topics.CrewExitHostStopped)
		if a.AwaitsHost {
			a.start()
		}
	case p.Stopping:
		a.ended(1, "", topics.CrewExitTerminated)
	default: // The host may have missed the action. It does the same one at most once.
		p.AskedMs = a.step.NowMS()
		a.step.Redo(p.Run, a.Member.Host, c.Epoch, a.startAction())
	}
}

// due does what is due. Whether somebody was silent for too long is decided by the time of the deadline, not by that of the
// step: the timestamp of another machine's record must not end a process.
func (a *agent) due(c topics.CrewDue) {
	if a.Member == nil {
		return
	}
	at := min(c.AtMS, a.step.NowMS())
	switch p := a.Process; {
	case p == nil:
	case p.HeardMs == 0 && at >= startDeadline(p):
		a.lost("the host did not start the agent in time", topics.CrewExitStart)
	case p.HeardMs != 0 && at >= hostDeadline(p):
		a.lost("the host was silent for too long", topics.CrewExitHostLost)
	case a.listens() && at >= p.OutputMs+a.rules.hung.Milliseconds():
		p.Hung = true
		a.step.Event("agent:hung", hung{a.id(), a.step.NowMS() - p.OutputMs})
	}
	if a.RestartMs != 0 && at >= a.RestartMs {
		a.RestartMs, a.RestartAsked = 0, true
		a.step.Send(a.crew(), topics.CrewRestartDue{AgentID: a.id(), Crashes: int(a.Crashes)})
	}
	if a.Process == nil && a.RemovedMs != 0 && at >= a.RemovedMs+keptFor.Milliseconds() {
		a.drop("the agent has ended")
		a.forgotten = true
	}
}

// lost ends a process of which the host says nothing. If the host still has it, it ends it.
func (a *agent) lost(text, cause string) {
	a.do(topics.CrewStop{AgentID: a.id(), Run: a.Process.Run, Reason: text})
	if cause == topics.CrewExitStart {
		a.Process.Failed = text
		a.step.Event("agent:spawn_error", spawnError{a.id(), text})
	}
	a.ended(1, text, cause)
}

func startDeadline(p *Process) int64 { return p.AskedMs + startTimeout.Milliseconds() }

func hostDeadline(p *Process) int64 { return p.HeardMs + hostTimeout.Milliseconds() }

// listens reports whether a silence of the agent is one to report.
func (a *agent) listens() bool {
	return a.Turn != nil && !a.Process.Hung && len(a.asked().Waiting) == 0
}

// deadline is the earliest time at which something is due, 0 for none.
func (a *agent) deadline() (ms int64) {
	add := func(at int64) {
		if ms == 0 || at < ms {
			ms = at
		}
	}
	switch p := a.Process; {
	case p == nil && a.RestartMs != 0:
		add(a.RestartMs)
	case p == nil && a.RemovedMs != 0:
		add(a.RemovedMs + keptFor.Milliseconds())
	case p == nil:
	case p.HeardMs == 0:
		add(startDeadline(p))
	default:
		add(hostDeadline(p))
		if a.listens() {
			add(p.OutputMs + a.rules.hung.Milliseconds())
		}
	}
	return ms
}
