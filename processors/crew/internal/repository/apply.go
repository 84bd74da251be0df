package repository

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const (
	reasonKind   = "an input of an unknown kind has no effect"
	reasonBody   = "the body of the input is not that of its kind: it has no effect"
	reasonMember = "the input does not say which agent it is of: it has no effect"
)

// step applies one input to a row.
type step struct {
	*mailbox.Step
	row    *State
	config Config
	key    string // of the repository
}

// apply applies an input. The row is kept indefinitely, because its tokens must not be given again.
func (c Config) apply(row *State, in topics.CrewInput, s *mailbox.Step) (deadlineMS int64, keep bool) {
	t := &step{Step: s, row: row, config: c, key: mailbox.ID(s.Subject)}
	t.due()
	if reason := t.input(in); reason != "" {
		t.DeadLetter(reason)
	}
	t.due()
	t.forget()
	return t.deadline(), true
}

// input does what an input asks for. It returns the reason why the input has no effect.
func (t *step) input(in topics.CrewInput) (reason string) {
	switch in.Kind {
	case crewbody.Command{}.Kind():
		return of(in, t.command)
	case crewbody.LockAsked{}.Kind():
		return of(in, t.lockAsked)
	case crewbody.UnlockAsked{}.Kind():
		return of(in, t.unlockAsked)
	case crewbody.AgentActive{}.Kind():
		return of(in, t.active)
	case crewbody.AgentEnded{}.Kind():
		return of(in, t.ended)
	case crewbody.ReleaseLocks{}.Kind():
		return of(in, t.releaseLocks)
	case crewbody.Receipt{}.Kind():
		return of(in, t.receipt)
	case crewbody.HostStarted{}.Kind():
		return of(in, t.hostStarted)
	case crewbody.Due{}.Kind():
		return "" // every step does what is due
	}
	return reasonKind
}

func of[T crewbody.Body](in topics.CrewInput, do func(T) string) (reason string) {
	body, err := crewbody.Decode[T](in.Body)
	if err != nil {
		return reasonBody
	}
	return do(body)
}

// due does what is due now.
func (t *step) due() {
	t.expire()
	t.giveUp()
	t.abandon()
}

// deadline returns when the next thing is due, 0 for never.
func (t *step) deadline() (ms int64) {
	earliest := func(at int64) {
		if ms == 0 || at < ms {
			ms = at
		}
	}
	for _, l := range t.row.Locks {
		switch {
		case l.ReleasedMs != 0:
			earliest(l.ReleasedMs)
		case l.Commit == "":
			earliest(l.ExpiresMs)
		}
	}
	for _, r := range t.row.Releases {
		if r.DeadlineMs != 0 {
			earliest(r.DeadlineMs)
		}
	}
	return ms
}

func (t *step) command(c crewbody.Command) string {
	a := t.met(c.Member)
	if a == nil {
		return reasonMember
	}
	id := t.Cause
	body, err := command.Decode(c.Name, c.Payload)
	if err != nil {
		t.answer(a.Id, id, err.Error())
		return ""
	}
	switch body := body.(type) {
	case command.LockFile:
		t.acquire(a, body.FilePath, body.Reason, t.config.LockTTL, id)
	case command.UnlockFile:
		t.release(a, body.FilePath, id)
	case command.Commit:
		t.commit(a, body.Message, body.Files, id)
	default:
		return reasonKind
	}
	return ""
}

func (t *step) receipt(r crewbody.Receipt) string {
	if !t.committed(r) {
		t.checked(r)
	}
	return "" // the action of a receipt that no one waits for was given up
}

// hostStarted gives a host its open actions again: its earlier run may have died before it did them.
func (t *step) hostStarted(h crewbody.HostStarted) string {
	for _, c := range t.row.Commits {
		if c.Host == h.Host {
			c.UntilMs = t.commitUntil()
			t.Redo(c.ActionId, c.Host, 0, t.actionOf(c))
		}
	}
	for _, r := range t.row.Releases {
		if r.ActionId != "" && r.Host == h.Host {
			t.Redo(r.ActionId, r.Host, 0, t.question(r))
		}
	}
	return ""
}

// answer answers a command of an agent for good, unless the agent has ended. The agent waits for a note with the ID of the command.
func (t *step) answer(agentID, commandID, text string) {
	if a := t.row.agent(agentID); a == nil || a.EndedMs == 0 {
		t.Send(mailbox.Agent(agentID), crewbody.Note{Text: text, CommandID: commandID})
	}
}

// note tells an agent something that answers none of its commands, or not yet.
func (t *step) note(agentID, text string) { t.answer(agentID, "", text) }
