package agent

import (
	"slices"
	"strconv"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

// hostStarted says that the host runs anew: it has no process of an earlier run.
func (a *agent) hostStarted(c crewbody.HostStarted) {
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
		a.ended(1, "the host was started anew", crewbody.ExitHostStopped)
		if a.AwaitsHost {
			a.start()
		}
	case p.Stopping:
		a.ended(1, "", crewbody.ExitTerminated)
	default: // The host may have missed the action. It does the same one at most once.
		p.AskedMs, p.Again, p.Silent = a.step.NowMS(), 0, false
		a.step.Redo(p.Run, a.Member.Host, c.Epoch, a.startAction())
	}
}

// due does what is due. Whether somebody was silent for too long is decided by the time of the deadline, not by that of the
// step: the timestamp of another machine's record must not end a process.
func (a *agent) due(c crewbody.Due) {
	if a.Member == nil {
		return
	}
	at := min(c.AtMS, a.step.NowMS())
	switch p := a.Process; {
	case p == nil:
	case p.hostDue() != 0 && at >= p.hostDue():
		a.hostSilent()
	case a.listens() && at >= p.OutputMs+a.config.HungAfter.Milliseconds():
		p.Hung = true
		a.step.Event("agent:hung", hung{a.id(), a.step.NowMS() - p.OutputMs})
	}
	if a.RestartMs != 0 && at >= a.RestartMs {
		a.RestartMs, a.RestartAsked = 0, true
		a.step.Send(a.crew(), crewbody.RestartDue{AgentID: a.id(), Crashes: int(a.Crashes)})
	}
	if due := a.idleDue(); due != 0 && at >= due {
		a.idle(at)
	}
	if a.Process == nil && a.RemovedMs != 0 && at >= a.RemovedMs+keptFor.Milliseconds() {
		a.drop("the agent has ended")
		a.forgotten = true
	}
}

// The texts about a host that says nothing.
const (
	noStart   = "the host has not started the agent: the agent waits for it"
	noHost    = "the host is silent: the agent waits for it"
	neverEnds = "the host did not say that the process has ended"
)

// hostSilent is done when the host was silent for too long. That is no failure of the agent: the host may be started anew, and
// says so, or it still has the process and was cut off, and goes on. The agent waits. Only a process that is to end is given up.
func (a *agent) hostSilent() {
	p := a.Process
	if p.Stopping {
		a.ended(1, neverEnds, crewbody.ExitTerminated)
		return
	}
	if !p.Silent {
		p.Silent = true
		if p.HeardMs == 0 {
			a.step.Event("agent:spawn_error", spawnError{a.id(), noStart})
		} else {
			a.step.Event("agent:problem", spawnError{a.id(), noHost})
		}
	}
	if p.HeardMs == 0 { // nobody knows whether the action was read; the host does it at most once
		p.AskedMs = a.step.NowMS()
		p.Again++
		a.step.Redo(p.Run, a.Member.Host, a.HostEpoch, a.startAction())
	}
}

// heardHost notes that the host has said something about the process.
func (a *agent) heardHost() {
	p := a.Process
	p.HeardMs = a.step.NowMS()
	if p.Silent {
		p.Silent, p.OutputMs = false, p.HeardMs // the silence was not that of the agent
	}
}

// hostDue is when the host is silent for too long, 0 if it is known to be. A host that does not answer a start is asked again,
// more and more seldom.
func (p *Process) hostDue() int64 {
	switch {
	case p.HeardMs == 0:
		return p.AskedMs + startTimeout.Milliseconds()<<min(p.Again, mostDoublings)
	case p.Silent && !p.Stopping:
		return 0
	default:
		return p.HeardMs + hostTimeout.Milliseconds()
	}
}

// listens reports whether a silence of the agent is one to report.
func (a *agent) listens() bool {
	return a.Turn != nil && !a.Process.Silent && !a.Process.Hung && len(a.asked().Waiting) == 0
}

// deadline is the earliest time at which something is due, 0 for none.
func (a *agent) deadline() (ms int64) {
	switch p := a.Process; {
	case p == nil && a.RestartMs != 0:
		ms = a.RestartMs
	case p == nil && a.RemovedMs != 0:
		ms = a.RemovedMs + keptFor.Milliseconds()
	case p == nil:
	default:
		ms = p.hostDue()
		if a.listens() {
			ms = mailbox.Earlier(ms, p.OutputMs+a.config.HungAfter.Milliseconds())
		}
	}
	return mailbox.Earlier(ms, a.idleDue())
}

// commitCommand is the command whose answer takes longest: a host runs git, and may do that for other commits first.
const commitCommand = "COMMIT"

// rest makes the agent idle. Clients and the crew are told after idleAfter, unless a turn begins before. turn says that a turn has
// ended, so that the crew gets a crewbody.AgentIdle.
func (a *agent) rest(turn bool) {
	a.Phase, a.IdleMs, a.Unreported = phaseIdle, a.step.NowMS()+idleAfter.Milliseconds(), turn
}

// busy cancels what rest has begun.
func (a *agent) busy() { a.IdleMs, a.Unreported = 0, false }

// idleDue is when idle has something to do, 0 for never. While messages wait, which a pause can cause, the turn is not reported.
func (a *agent) idleDue() int64 {
	switch {
	case a.IdleMs != 0:
		return a.IdleMs
	case a.Unreported && a.Process.GetReady() && a.waiting() == 0:
		return a.answersDue()
	}
	return 0
}

// idle does what is due at a time for an agent that has nothing to do. It lets tell report the status, and reports the end of the
// turn to the crew if all commands are answered or overdue.
func (a *agent) idle(at int64) {
	if a.IdleMs > at {
		return
	}
	a.IdleMs = 0
	if !a.Unreported || a.waiting() > 0 || a.answersDue() > at {
		return
	}
	a.Unreported, a.Awaited = false, nil
	a.step.Send(a.crew(), crewbody.AgentIdle{
		AgentID: a.id(), StopReason: a.Outcome, SessionID: a.SessionId, Output: a.Output, Heard: a.heard(),
	})
}

// answersDue is when the last of the awaited answers is overdue, 0 if none is awaited.
func (a *agent) answersDue() (ms int64) {
	for _, c := range a.Awaited {
		ms = max(ms, c.DueMs)
	}
	return ms
}

// await notes that an answer to a command will follow.
func (a *agent) await(item command.Item) {
	if !command.Answered(item.Name) {
		return
	}
	timeout := answerTimeout
	if item.Name == commitCommand {
		timeout = commitTimeout
	}
	a.forgetOverdue()
	a.Awaited = append(a.Awaited, &Awaited{Offset: item.Offset, Name: item.Name, DueMs: a.step.NowMS() + timeout.Milliseconds()})
	a.Awaited = a.Awaited[max(0, len(a.Awaited)-awaitedLimit):]
}

// answered notes that a note answers a command. Notes without a command's ID answer none: they say that a lock has expired, or that a
// commit waits for the one before it.
func (a *agent) answered(c crewbody.Note) {
	a.forgetOverdue()
	if c.CommandID != "" {
		a.Awaited = slices.DeleteFunc(a.Awaited, func(w *Awaited) bool { return a.commandID(w.Offset) == c.CommandID })
	}
}

func (a *agent) forgetOverdue() {
	a.Awaited = slices.DeleteFunc(a.Awaited, func(w *Awaited) bool { return w.DueMs <= a.step.NowMS() })
}

// commandID identifies the command at a place in the session's text.
func (a *agent) commandID(offset int64) string {
	return a.step.Subject + "/" + a.SessionId + "/" + strconv.FormatInt(offset, 10)
}
