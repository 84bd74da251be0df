package repository

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

const (
	// queueLimit is how many commits of an agent may wait for the one before.
	queueLimit = 20
	// messageLimit is the longest message of a commit in bytes.
	messageLimit = 8000
	// commitWithin is how long the host may take until it makes a commit. A commit takes at most 2 minutes, and may wait for others.
	commitWithin = 10 * time.Minute
	// clockMargin is how much the clock of a host may be behind, with the time that the last step of a commit takes.
	clockMargin = time.Minute
)

func (t *step) commitUntil() int64 { return t.NowMS() + commitWithin.Milliseconds() }

// commit returns the open commit of an action, nil if there is none.
func (s *State) commit(actionID string) *Commit {
	return find(s.Commits, func(c *Commit) bool { return c.ActionId == actionID })
}

// commit answers COMMIT: at once, or after the agent's commit before it.
func (t *step) commit(a *Agent, message string, files []string, commandID string) {
	message = truncate.Text(strings.TrimSpace(message), messageLimit)
	size := len(message) + len(commandID) + 300
	for _, f := range files {
		size += len(f) + 4
	}
	waiting := 0
	for _, q := range t.row.Queue {
		if q.AgentId == a.Id {
			waiting++
		}
	}
	open := slices.ContainsFunc(t.row.Commits, func(c *Commit) bool { return c.AgentId == a.Id })
	switch {
	case !t.roomFor(size):
		t.answer(a.Id, commandID, "COMMIT refused: too much is going on in the repository. Try again later.")
	case waiting >= queueLimit:
		t.answer(a.Id, commandID, "COMMIT refused: "+strconv.Itoa(waiting)+" of your commits wait for the one before them.")
	case open:
		t.row.Queue = append(t.row.Queue, &Queued{AgentId: a.Id, Message: message, Files: files, CommandId: commandID})
		t.note(a.Id, "COMMIT waits for your commit before it.")
	default:
		t.open(a, message, files, commandID)
	}
}

// open has the host commit what the agent has locked.
func (t *step) open(a *Agent, message string, files []string, commandID string) {
	left := t.leftOut(a, files)
	c := &Commit{
		AgentId: a.Id, Host: a.Host, Cwd: a.Cwd, Message: message, LeftOut: left, UntilMs: t.commitUntil(), CommandId: commandID,
	}
	if c.Message == "" {
		c.Message = "Changes by " + called(a)
	}
	var locks []*Lock
	for _, l := range t.row.Locks {
		if l.AgentId == a.Id && l.ReleasedMs == 0 {
			locks = append(locks, l)
			c.Fence = max(c.Fence, l.Token)
		}
	}
	switch {
	case len(locks) == 0:
		t.answer(a.Id, commandID, strings.Join(append([]string{"COMMIT refused: you have locked no files. Lock what you change with LOCK_FILE."},
			leftOutText(left)...), "\n"))
		return
	case a.Host == "":
		t.answer(a.Id, commandID, "COMMIT refused: you work on no host that could commit.")
		return
	}
	c.ActionId = t.Do(c.Host, 0, t.action(a, c, locks))
	for _, l := range locks {
		l.Commit = c.ActionId
	}
	t.row.Commits = append(t.row.Commits, c)
}

// leftOut returns the files that an agent names without holding them, once each.
func (t *step) leftOut(a *Agent, files []string) (left []string) {
	for _, raw := range files {
		path, err := a.path(raw)
		if err != nil {
			path = truncate.Text(raw, reasonLimit)
		}
		held := err == nil && slices.ContainsFunc(t.row.Locks, func(l *Lock) bool {
			return l.AgentId == a.Id && l.ReleasedMs == 0 && (l.Path == path || covers(l.Path, path))
		})
		if !held && !slices.Contains(left, path) {
			left = append(left, path)
		}
	}
	return left
}

// actionOf is the action of an open commit, with the locks that it still has. The paths that are released since are part of it, because
// the host may have made the commit with them.
func (t *step) actionOf(c *Commit) crewbody.Commit {
	var locks []*Lock
	released := slices.Clone(c.Released)
	for _, l := range t.row.Locks {
		switch {
		case l.Commit != c.ActionId:
		case l.ReleasedMs == 0:
			locks = append(locks, l)
		default:
			released = append(released, l.Path)
		}
	}
	action := t.action(t.row.agent(c.AgentId), c, locks)
	action.Released = released
	return action
}

func (t *step) action(a *Agent, c *Commit, locks []*Lock) crewbody.Commit {
	paths := make([]string, len(locks))
	for i, l := range locks {
		paths[i] = l.Path
	}
	return crewbody.Commit{
		AgentID: c.AgentId, Cwd: c.Cwd, Paths: paths, Message: c.Message, Author: called(a), Fence: c.Fence,
		UntilMS: c.UntilMs,
	}
}

// committed takes the answer of a host to a commit. It reports whether a commit waited for it.
func (t *step) committed(r crewbody.Receipt) bool {
	i := slices.IndexFunc(t.row.Commits, func(c *Commit) bool { return c.ActionId == r.ActionID })
	if i < 0 {
		return false
	}
	c := t.row.Commits[i]
	t.row.Commits = slices.Delete(t.row.Commits, i, i+1)
	a := t.row.agent(c.AgentId)
	gone := func(l *Lock) bool { return l.Commit == c.ActionId && (l.ReleasedMs != 0 || l.Releases) }
	kept := slices.ContainsFunc(t.row.Locks, func(l *Lock) bool { return l.Commit == c.ActionId && !gone(l) })
	if r.Failed {
		t.answer(c.AgentId, c.CommandId, failedText(c, r))
	} else {
		t.happened(a, "agent:committed", map[string]any{
			"agentId": c.AgentId, "commit": r.Commit, "files": r.Files, "message": c.Message,
		})
		if a.GetCrewId() != "" {
			t.Send(mailbox.Crew(a.CrewId), crewbody.Committed{
				AgentID: c.AgentId, Commit: r.Commit, Files: r.Files, Message: c.Message,
			})
		}
		t.answer(c.AgentId, c.CommandId, committedText(c, r, kept))
	}
	t.remove(gone, func(l *Lock) { t.released(l, l.ReleasedBy) })
	for _, l := range t.row.Locks {
		if l.Commit == c.ActionId {
			l.Commit = ""
		}
	}
	if a.GetEndedMs() != 0 {
		t.releaseAll(a)
		return true
	}
	t.expire()
	t.askAgain(c.AgentId)
	t.next(a)
	return true
}

// next opens the oldest commit of an agent that waits, until one is open.
func (t *step) next(a *Agent) {
	for !slices.ContainsFunc(t.row.Commits, func(c *Commit) bool { return c.AgentId == a.Id }) {
		i := slices.IndexFunc(t.row.Queue, func(q *Queued) bool { return q.AgentId == a.Id })
		if i < 0 {
			return
		}
		q := t.row.Queue[i]
		t.row.Queue = slices.Delete(t.row.Queue, i, i+1)
		t.open(a, q.Message, q.Files, q.CommandId)
	}
}
