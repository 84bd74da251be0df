package crewhttp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// maxShown is how many agents an init frame has: those that have not ended, then the newest others.
const maxShown = 1000

// maxCalls is how many bytes of tool calls an init frame has.
const maxCalls = 2 << 20

// admit sends a client the init frame, and all events that follow it. It returns false if the index has stopped.
func (x *Index) admit(c *client) bool {
	x.prepare(c.wants)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped {
		return false
	}
	x.clients[c] = struct{}{}
	x.greet(c)
	return true
}

// leave removes a client.
func (x *Index) leave(c *client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.clients, c)
}

// stop disconnects all clients and accepts no more.
func (x *Index) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopped = true
	for c := range x.clients {
		c.End(ws.StatusGoingAway, socket.ReasonStopping)
	}
}

// greet sends an init frame: the state, and for each subject of it the seq of the last event that the state includes. Events
// that the state does not include follow. The caller holds the lock.
func (x *Index) greet(c *client) {
	agents, left := x.shownAgents(c.wants)
	trim(agents)
	seqs := map[string]int64{}
	note := func(subject string, row int64) {
		if s := x.streams.bySubject[subject]; s != nil {
			row = min(row, s.last.Seq)
		}
		seqs[subject] = row
	}
	for _, a := range agents {
		note(mailbox.Agent(a.ID), x.agents[a.ID].seq)
	}
	crews, paused := 0, true
	for id, r := range x.crews {
		if c.wants(id, r.GetRoster().GetProjectId()) {
			crews, paused = crews+1, paused && r.GetSettings().GetPaused()
			note(mailbox.Crew(id), r.GetMailbox().GetSeq())
		}
	}
	for name, r := range x.repositories {
		if s := x.streams.bySubject[mailbox.Repository(name)]; s != nil && x.concerns(c, s) {
			note(s.subject, r.GetMailbox().GetSeq())
		}
	}
	x.noteNew(c, seqs)
	members := []any{
		"type", "init", "agents", agents, "locks", x.shownLocks(c.wants), "systemPaused", crews > 0 && paused, "seqs", seqs,
	}
	if left || x.full {
		members = append(members, "incomplete", true)
	}
	r := newReplay(c.config)
	r.add(entrance.Object(members...))
	for _, subject := range slices.Sorted(maps.Keys(seqs)) {
		if s := x.streams.bySubject[subject]; s != nil {
			r.repeat(x, c, s, seqs[subject])
		}
	}
	c.replay(r)
}

const (
	// unseenFor is how old the events of an agent may be whose row is not seen yet, and maxUnseen among how many subjects, those
	// with the newest events, such agents are looked for.
	unseenFor = time.Minute
	maxUnseen = 1000
)

// noteNew adds the agents that have events but no row yet to the subjects of an init frame, so that their events follow it. The
// caller holds the lock.
func (x *Index) noteNew(c *client, seqs map[string]int64) {
	now := x.config.Clock.Now().UnixMilli()
	for at, n := x.streams.used.Back(), 0; at != nil && n < maxUnseen; at, n = at.Prev(), n+1 {
		s := at.Value.(*stream)
		id, ok := strings.CutPrefix(s.subject, mailbox.OfAgent)
		if ok && x.agents[id] == nil && s.events[0].Seq == 1 && now-s.last.AtMS <= unseenFor.Milliseconds() && c.wants(x.crewOf(s.last), x.projectOf(s.last)) {
			seqs[s.subject] = 0
		}
	}
}

// concerns reports whether a client may see events of a subject. Those of a repository belong to several crews. The caller holds
// the lock.
func (x *Index) concerns(c *client, s *stream) bool {
	if c.crews.use(x.crewOf(s.last)) {
		return true
	}
	_, shared := strings.CutPrefix(s.subject, mailbox.OfRepository)
	return shared && slices.ContainsFunc(s.events, func(e *event) bool { return c.crews.use(x.crewOf(e)) })
}

// shownAgents returns the agents of which wanted is true for crew and project, in the order of their creation. left reports
// whether there are more. The caller holds the lock.
func (x *Index) shownAgents(wanted func(crew, project string) bool) (agents []view.Agent, left bool) {
	rows, left := x.shownRows(wanted)
	slices.SortStableFunc(rows, func(a, b *agentRow) int {
		return cmp.Or(cmp.Compare(a.view.CreatedAt, b.view.CreatedAt), cmp.Compare(a.view.ID, b.view.ID))
	})
	agents = make([]view.Agent, len(rows))
	children := x.children()
	for i, r := range rows {
		agents[i] = r.shown()
		x.complete(&agents[i], children[agents[i].ID])
	}
	return agents, left
}

// shownRows returns the rows of shownAgents, the most important ones first. The caller holds the lock.
func (x *Index) shownRows(wanted func(crew, project string) bool) (rows []*agentRow, left bool) {
	now := x.config.Clock.Now().UnixMilli()
	for _, r := range x.agents {
		if (r.removedMS == 0 || r.removedMS > now) && wanted(r.view.CrewID, r.view.ProjectID) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *agentRow) int {
		live := func(r *agentRow) int {
			if view.Ended(r.view.Status) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(live(a), live(b)), cmp.Compare(b.view.CreatedAt, a.view.CreatedAt), cmp.Compare(a.view.ID, b.view.ID))
	})
	if left = len(rows) > maxShown; left {
		rows = rows[:maxShown]
	}
	return rows, left
}

// prepare removes secrets from the agents that are about to be shown, so that nobody waits for it under the lock.
func (x *Index) prepare(wanted func(crew, project string) bool) {
	x.mu.Lock()
	rows, _ := x.shownRows(wanted)
	x.mu.Unlock()
	for _, r := range rows {
		r.shown()
	}
}

// trim leaves the newest tool calls of agents, of all agents together at most maxCalls bytes. agents are copies.
func trim(agents []view.Agent) {
	for i := range agents {
		calls, room := agents[i].ToolCalls, maxCalls/len(agents)
		first := len(calls)
		for ; first > 0; first-- {
			t := calls[first-1]
			room -= len(t.Title) + len(t.Content) + len(t.Locations) + len(t.RawInput) + len(t.RawOutput) + 200
			if room < 0 {
				break
			}
		}
		agents[i].ToolCalls = calls[first:]
	}
}

// children returns the children of each agent, in the order of their creation. The caller holds the lock.
func (x *Index) children() map[string][]string {
	children := map[string][]string{}
	for id, r := range x.agents {
		if parent := r.view.ParentID; parent != "" {
			children[parent] = append(children[parent], id)
		}
	}
	for _, ids := range children {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(x.agents[a].view.CreatedAt, x.agents[b].view.CreatedAt), cmp.Compare(a, b))
		})
	}
	return children
}

// complete adds to an agent what its row does not have. a is a copy.
func (x *Index) complete(a *view.Agent, children []string) {
	a.ChildIDs = append([]string{}, children...)
	for _, r := range x.config.Roles {
		if r.ID == a.Role.ID {
			a.Role = r
			a.Role.SystemPrompt = "" // long, and not for people
		}
	}
	a.ProjectName = cmp.Or(a.ProjectName, x.crews[a.CrewID].GetRoster().GetProjectName())
}

// shownLocks returns the locks of which wanted is true for crew and project, by repository and path. The caller holds the
// lock of the index.
func (x *Index) shownLocks(wanted func(crew, project string) bool) []view.FileLock {
	locks := []view.FileLock{}
	now := x.config.Clock.Now().UnixMilli()
	for name, r := range x.repositories {
		for _, l := range repository.Locks(name, r, now) {
			crew := ""
			if a := x.agents[l.AgentID]; a != nil {
				crew = a.view.CrewID
			}
			if wanted(crew, l.ProjectID) {
				l.Reason = Redact(l.Reason)
				locks = append(locks, l)
			}
		}
	}
	slices.SortFunc(locks, func(a, b view.FileLock) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.FilePath, b.FilePath))
	})
	return locks
}
