package repository

import (
	"cmp"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
)

// answerWithin is how long a host may take to tell whether files have changes.
const answerWithin = 20 * time.Second

// release answers UNLOCK_FILE. The lock goes when the host says that its files have no changes.
func (t *step) release(a *Agent, raw, commandID string) {
	path, err := a.path(raw)
	if err != nil {
		t.answer(a.Id, commandID, "UNLOCK_FILE: you have no lock on "+quoted(truncate.Text(raw, reasonLimit))+".")
		return
	}
	l := t.row.lock(a.Id, path)
	switch {
	case l == nil:
		t.answer(a.Id, commandID, "UNLOCK_FILE: you have no lock on "+quoted(path)+".")
	case slices.ContainsFunc(t.row.Releases, func(r *Release) bool { return r.Token == l.Token }):
		t.answer(a.Id, commandID, "UNLOCK_FILE: "+quoted(path)+" is being released already. The answer to your first UNLOCK_FILE follows.")
	case !t.roomFor(len(path) + len(commandID) + 300):
		t.answer(a.Id, commandID, "UNLOCK_FILE: too much is going on in the repository. Try again later.")
	default:
		r := &Release{AgentId: a.Id, Path: path, Token: l.Token, Host: a.Host, CommandId: commandID}
		t.row.Releases = append(t.row.Releases, r)
		t.ask(r, l)
	}
}

// ask asks the host about a release, unless a commit of the lock is open: then the receipt asks.
func (t *step) ask(r *Release, l *Lock) {
	switch {
	case l.Commit != "":
		r.ActionId, r.DeadlineMs = "", 0
	case r.Host == "":
		t.letGo(r, l) // no host can tell
	default:
		r.ActionId = t.Do(r.Host, 0, t.question(r))
		r.DeadlineMs = t.NowMS() + answerWithin.Milliseconds()
	}
}

// question is the action of a release.
func (t *step) question(r *Release) crewbody.Dirty {
	return crewbody.Dirty{AgentID: r.AgentId, Cwd: t.row.agent(r.AgentId).GetCwd(), Paths: []string{r.Path}}
}

// checked takes the answer of a host to a release.
func (t *step) checked(in crewbody.Receipt) {
	r := find(t.row.Releases, func(r *Release) bool { return r.ActionId != "" && r.ActionId == in.ActionID })
	if r == nil {
		return
	}
	l := t.row.lock(r.AgentId, r.Path)
	switch {
	case l == nil || l.Token != r.Token: // giveUp answers it
	case l.Commit != "":
		t.ask(r, l)
	case !in.Failed && len(in.Dirty) > 0:
		t.drop(r)
		t.answer(r.AgentId, r.CommandId, "UNLOCK_FILE refused for "+quoted(r.Path)+": there are changes that are in no commit: "+names(in.Dirty)+
			". COMMIT first, or undo them.")
	default: // without git's help no one can tell, and a lock that cannot be released helps no one
		t.letGo(r, l)
	}
}

// letGo releases the lock of a release.
func (t *step) letGo(r *Release, l *Lock) {
	t.drop(r)
	t.remove(func(other *Lock) bool { return other == l }, func(l *Lock) { t.released(l, "") })
	t.answer(r.AgentId, r.CommandId, "Released "+quoted(r.Path)+".")
}

func (t *step) drop(r *Release) {
	t.row.Releases = slices.DeleteFunc(t.row.Releases, func(other *Release) bool { return other == r })
}

// giveUp ends the releases whose host is silent, and those whose lock is gone: a person has released it, or it has expired.
func (t *step) giveUp() {
	for _, r := range slices.Clone(t.row.Releases) {
		l := t.row.lock(r.AgentId, r.Path)
		switch {
		case l == nil || l.Token != r.Token:
			t.drop(r)
			t.answer(r.AgentId, r.CommandId, "UNLOCK_FILE: you have no lock on "+quoted(r.Path)+" any more.")
		case r.DeadlineMs != 0 && r.DeadlineMs <= t.NowMS():
			t.drop(r)
			t.answer(r.AgentId, r.CommandId, "UNLOCK_FILE: no one could tell whether "+quoted(r.Path)+" has changes, because the host "+quoted(r.Host)+
				" does not answer. The lock is kept. Try again later.")
		}
	}
}

// askAgain asks about the releases that waited for a commit of an agent.
func (t *step) askAgain(agentID string) {
	for _, r := range slices.Clone(t.row.Releases) {
		if l := t.row.lock(r.AgentId, r.Path); r.AgentId == agentID && r.ActionId == "" && l != nil && l.Token == r.Token {
			t.ask(r, l)
		}
	}
}

// unlockAsked releases a lock for a person, without asking a host. The host may be making a commit that contains the path, so
// the path of an open commit is free only with the receipt, or when the host does not make the commit any more.
func (t *step) unlockAsked(in crewbody.UnlockAsked) {
	path, err := Path(in.FilePath)
	if err != nil {
		return // there is no such lock
	}
	by := truncate.Text(cmp.Or(in.By, "user"), memberLimit)
	for _, l := range t.row.Locks {
		if c := t.row.commit(l.Commit); in.Force && l.Path == path && c != nil && l.ReleasedMs == 0 {
			l.ReleasedBy, l.ReleasedMs = by, cmp.Or(c.UntilMs, t.commitUntil())+clockMargin.Milliseconds()
			t.note(l.AgentId, "A person has released your lock on "+quoted(path)+". Your open commit may still contain it. Do not edit it "+
				"before you have locked it again.")
		}
	}
	t.remove(func(l *Lock) bool {
		return l.Path == path && l.Commit == "" && (in.Force || l.AgentId == in.AgentID)
	}, func(l *Lock) {
		t.released(l, by)
		t.note(l.AgentId, "A person has released your lock on "+quoted(path)+". Do not edit it before you have locked it again.")
	})
}

// abandon gives up the commits of ended agents that have no locks left: a person has released them because their host is gone for
// good, and the host does not make the commits any more.
func (t *step) abandon() {
	t.row.Commits = slices.DeleteFunc(t.row.Commits, func(c *Commit) bool {
		held := slices.ContainsFunc(t.row.Locks, func(l *Lock) bool { return l.Commit == c.ActionId })
		return !held && t.row.agent(c.AgentId).GetEndedMs() != 0
	})
}
