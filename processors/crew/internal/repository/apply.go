package repository

import (
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const (
	reasonKind   = "an input of an unknown kind has no effect"
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
	handlers.Handle(s, t, in, reasonKind, "the body of the input is not that of its kind: it has no effect")
	t.due()
	t.forget()
	return t.deadline(), true
}

var handlers = mailbox.Handlers[*step]{}

func init() {
	mailbox.On(handlers, (*step).command)
	mailbox.On(handlers, (*step).lockAsked)
	mailbox.On(handlers, (*step).unlockAsked)
	mailbox.On(handlers, (*step).active)
	mailbox.On(handlers, (*step).ended)
	mailbox.On(handlers, (*step).releaseLocks)
	mailbox.On(handlers, (*step).receipt)
	mailbox.On(handlers, (*step).hostStarted)
	mailbox.On(handlers, func(*step, crewbody.Due) {}) // every step does what is due
}

// due does what is due now.
func (t *step) due() {
	t.expire()
	t.giveUp()
	t.abandon()
}

// deadline returns when the next thing is due, 0 for never.
func (t *step) deadline() (ms int64) {
	for _, l := range t.row.Locks {
		switch {
		case l.ReleasedMs != 0:
			ms = mailbox.Earlier(ms, l.ReleasedMs)
		case l.Commit == "":
			ms = mailbox.Earlier(ms, l.ExpiresMs)
		}
	}
	for _, r := range t.row.Releases {
		ms = mailbox.Earlier(ms, r.DeadlineMs)
	}
	return ms
}

func (t *step) command(c crewbody.Command) {
	a := t.met(c.Member)
	if a == nil {
		return
	}
	id := t.Cause
	body, err := command.Decode(c.Name, c.Payload)
	if err != nil {
		t.answer(a.Id, id, err.Error())
		return
	}
	switch body := body.(type) {
	case command.LockFile:
		t.acquire(a, body.FilePath, body.Reason, t.config.LockTTL, id)
	case command.UnlockFile:
		t.release(a, body.FilePath, id)
	case command.Commit:
		t.commit(a, body.Message, body.Files, id)
	default:
		t.DeadLetter(reasonKind)
	}
}

// receipt takes the answer of a host. The action of a receipt that no one waits for was given up.
func (t *step) receipt(r crewbody.Receipt) {
	if !t.committed(r) {
		t.checked(r)
	}
}

// hostStarted gives a host its open actions again: its earlier run may have died before it did them.
func (t *step) hostStarted(h crewbody.HostStarted) {
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
}

// answer answers a command of an agent for good, unless the agent has ended. The agent waits for a note with the ID of the command.
func (t *step) answer(agentID, commandID, text string) {
	if a := t.row.agent(agentID); a == nil || a.EndedMs == 0 {
		t.Send(mailbox.Agent(agentID), crewbody.Note{Text: text, CommandID: commandID})
	}
}

// note tells an agent something that answers none of its commands, or not yet.
func (t *step) note(agentID, text string) { t.answer(agentID, "", text) }

// Table is the format of the row of a repository.
var Table = mailbox.Table[*State]("crew repository", nil)

// Group returns the group "{name}-crew-repositories": the locks and commits of all repositories, in one row per repository. name is
// that of the catalog.
func Group(name string, c Config) (mailbox.Group[*State], error) {
	if err := c.complete(); err != nil {
		return mailbox.Group[*State]{}, err
	}
	return mailbox.NewGroup(name, mailbox.OfRepository, Table, c.apply)
}

// Config has what users can set. crew.Config describes the fields.
type Config struct {
	LockTTL time.Duration
}

func (c *Config) complete() error {
	var check bounds.Check
	bounds.Between(&check, "LockTTL", &c.LockTTL, 5*time.Minute, minTTL, maxTTL)
	return check.Err(mailbox.ErrConfig)
}
