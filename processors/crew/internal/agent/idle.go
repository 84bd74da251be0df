package agent

import (
	"slices"
	"strconv"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
)

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
