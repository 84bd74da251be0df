package repository

import (
	"cmp"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	// endedFor is how long the row remembers an ended agent, and endedLimit how many: so long its late inputs are known.
	endedFor   = 24 * time.Hour
	endedLimit = 1000
	// memberLimit is how many bytes each of the texts that say who an agent is may have. The row keeps them, and what it tells
	// about a lock repeats them, so a longer one could not be told any more.
	memberLimit = 1000
)

func (s *State) agent(id string) *Agent {
	return find(s.GetAgents(), func(a *Agent) bool { return a.Id == id })
}

func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// met returns the agent that an input is of, with what the input says about it. It is nil if that is no one, or no agent of a
// crew's: then the input is dead-lettered.
func (t *step) met(m crewbody.Member) *Agent {
	longest := max(len(m.AgentID), len(m.CrewID), len(m.ProjectID), len(m.RoleID), len(m.RoleName), len(m.Host), len(m.Cwd))
	a := t.known(m.AgentID, longest)
	if a == nil {
		return nil
	}
	a.CrewId, a.ProjectId, a.RoleId, a.RoleName = m.CrewID, m.ProjectID, m.RoleID, m.RoleName
	a.Host, a.Cwd, a.EndedMs = m.Host, m.Cwd, 0
	if m.Root != "" && len(m.Root)+len(m.Below) <= memberLimit {
		a.Root, a.Below = m.Root, m.Below
	}
	return a
}

// known returns an agent, which may be new. It is nil if no agent has the ID, or if a text about the agent is too long: then the input
// is dead-lettered.
func (t *step) known(id string, longest int) *Agent {
	if id == "" || max(len(id), longest) > memberLimit {
		t.DeadLetter(reasonMember)
		return nil
	}
	a := t.row.agent(id)
	if a == nil {
		a = &Agent{Id: id}
		t.row.Agents = append(t.row.Agents, a)
	}
	return a
}

// called is how people call an agent: its role and the beginning of its ID.
func called(a *Agent) string {
	return cmp.Or(a.GetRoleName(), a.GetRoleId(), "agent") + " (" + view.ShortID(a.GetId()) + ")"
}

// active extends the locks of an agent.
func (t *step) active(in crewbody.AgentActive) {
	a := t.met(in.Member)
	if a == nil {
		return
	}
	for _, l := range t.row.Locks {
		if l.AgentId == a.Id {
			l.ExpiresMs = max(l.ExpiresMs, t.NowMS()+t.config.LockTTL.Milliseconds())
		}
	}
}

// ended releases what an agent has, except what is part of a commit.
func (t *step) ended(in crewbody.AgentEnded) {
	a := t.known(in.AgentID, 0)
	if a == nil {
		return
	}
	a.EndedMs = t.NowMS()
	t.row.Queue = slices.DeleteFunc(t.row.Queue, func(q *Queued) bool { return q.AgentId == a.Id })
	t.row.Releases = slices.DeleteFunc(t.row.Releases, func(r *Release) bool { return r.AgentId == a.Id })
	t.releaseAll(a)
}

// releaseLocks releases what an agent has that goes on. Its locks in an open commit are released with the receipt. The releases that it
// has asked for are answered when their locks are gone.
func (t *step) releaseLocks(in crewbody.ReleaseLocks) {
	a := t.row.agent(in.AgentID)
	if a == nil {
		return // it has no locks
	}
	t.row.Queue = slices.DeleteFunc(t.row.Queue, func(q *Queued) bool {
		if q.AgentId != a.Id {
			return false
		}
		t.answer(a.Id, q.CommandId, "COMMIT refused: your locks were released. Lock what you change with LOCK_FILE.")
		return true
	})
	for _, l := range t.row.Locks {
		if l.AgentId == a.Id && l.Commit != "" {
			l.Releases = true
		}
	}
	t.releaseAll(a)
}

// releaseAll releases the locks of an agent that are not part of a commit.
func (t *step) releaseAll(a *Agent) {
	t.remove(func(l *Lock) bool { return l.AgentId == a.Id && l.Commit == "" }, func(l *Lock) { t.released(l, "") })
}

// forget forgets agents that nothing names.
func (t *step) forget() {
	named := map[string]bool{}
	for _, l := range t.row.Locks {
		named[l.AgentId] = true
	}
	for _, c := range t.row.Commits {
		named[c.AgentId] = true
	}
	for _, q := range t.row.Queue {
		named[q.AgentId] = true
	}
	for _, r := range t.row.Releases {
		named[r.AgentId] = true
	}
	surplus := -endedLimit
	for _, a := range t.row.Agents {
		if a.EndedMs != 0 && !named[a.Id] {
			surplus++
		}
	}
	old := t.NowMS() - endedFor.Milliseconds()
	t.row.Agents = slices.DeleteFunc(t.row.Agents, func(a *Agent) bool {
		switch {
		case named[a.Id]:
			return false
		case a.EndedMs == 0:
			return true // its next input says again who it is
		case a.EndedMs > old && surplus <= 0:
			// Its next input says again who it is.
			a.CrewId, a.ProjectId, a.RoleId, a.RoleName, a.Host, a.Cwd = "", "", "", "", "", ""
			return false
		}
		surplus--
		t.Forget(mailbox.Agent(a.Id))
		return true
	})
}
