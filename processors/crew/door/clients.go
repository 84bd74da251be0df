package door

import (
	"cmp"
	"slices"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

// maxShown is how many agents an init frame has: those that have not ended, then the newest others.
const maxShown = 1000

// admit sends a client the init frame, and all events that follow it. It returns false if the index has stopped.
func (x *Index) admit(c *client) bool {
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
		c.end(ws.StatusGoingAway, reasonStopping)
	}
}

// greet sends an init frame: the state, and for each subject of it the seq of the last event that the state includes. Events
// that the state does not include follow. The caller holds the lock.
func (x *Index) greet(c *client) {
	agents, left := x.shownAgents(c.wants)
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
		if project, _ := r.Project(); c.wants(id, project) {
			crews, paused = crews+1, paused && r.Paused()
			note(mailbox.Crew(id), r.seq)
		}
	}
	members := []any{
		"type", "init", "agents", agents, "locks", x.shownLocks(c.wants), "systemPaused", crews > 0 && paused, "seqs", seqs,
	}
	if left || x.full {
		members = append(members, "incomplete", true)
	}
	c.show(object(members...))
	subjects := make([]string, 0, len(seqs))
	for subject := range seqs {
		subjects = append(subjects, subject)
	}
	slices.Sort(subjects)
	for _, subject := range subjects {
		if s := x.streams.bySubject[subject]; s != nil {
			if events, ok := s.since(seqs[subject]); ok {
				x.repeat(c, events)
			}
		}
	}
}

// repeat shows events to a client again, text only if it has subscribed to it. The caller holds the lock.
func (x *Index) repeat(c *client, events []*event) {
	text, from := "", int64(0)
	for i, e := range events {
		if e.Type != textEvent {
			if c.wants(x.crewOf(e), x.projectOf(e)) {
				c.show(e.frame)
			}
			continue
		}
		if text == "" {
			from = e.Seq
		}
		text += e.text
		if ends := i+1 == len(events) || events[i+1].Type != textEvent || len(text) >= maxUnshown; ends {
			if c.wants(x.crewOf(e), x.projectOf(e)) && c.wantsText(e.about) {
				c.show(textFrame(e, from, text))
			}
			text = ""
		}
	}
}

// shownAgents returns the agents of which wanted is true for crew and project, in the order of their creation. left reports
// whether there are more. The caller holds the lock.
func (x *Index) shownAgents(wanted func(crew, project string) bool) (agents []view.Agent, left bool) {
	agents = []view.Agent{}
	now := x.options.clock.Now().UnixMilli()
	for _, r := range x.agents {
		if (r.removed == nil || !r.removed(now)) && wanted(r.view.CrewID, r.view.ProjectID) {
			agents = append(agents, r.view)
		}
	}
	slices.SortFunc(agents, func(a, b view.Agent) int {
		live := func(a view.Agent) int {
			if view.Ended(a.Status) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(live(a), live(b)), cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if left = len(agents) > maxShown; left {
		agents = agents[:maxShown]
	}
	slices.SortStableFunc(agents, func(a, b view.Agent) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	children := x.children()
	for i := range agents {
		x.complete(&agents[i], children[agents[i].ID])
	}
	return agents, left
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

// complete adds to an agent what its row does not have, and removes secrets from its texts. a is a copy of the row's view.
func (x *Index) complete(a *view.Agent, children []string) {
	a.ChildIDs = append([]string{}, children...)
	for _, r := range x.options.roles {
		if r.ID == a.Role.ID {
			a.Role = r
			a.Role.SystemPrompt = "" // long, and not for people
		}
	}
	if r := x.crews[a.CrewID]; r != nil && a.ProjectName == "" {
		_, a.ProjectName = r.Project()
	}
	a.OutputPreview, a.Task, a.ExitError = Redact(a.OutputPreview), Redact(a.Task), Redact(a.ExitError)
	a.Plan = redactJSON(a.Plan)
	a.ToolCalls = slices.Clone(a.ToolCalls)
	for i := range a.ToolCalls {
		t := &a.ToolCalls[i]
		t.Title, t.Content = Redact(t.Title), Redact(t.Content)
	}
}

// shownLocks returns the locks of which wanted is true for crew and project, by repository and path. The caller holds the
// lock of the index.
func (x *Index) shownLocks(wanted func(crew, project string) bool) []view.FileLock {
	locks := []view.FileLock{}
	now := x.options.clock.Now().UnixMilli()
	for _, r := range x.repositories {
		for _, l := range r.locks(now) {
			crew := ""
			if a := x.agents[l.AgentID]; a != nil {
				crew = a.view.CrewID
			}
			if wanted(crew, l.ProjectID) {
				locks = append(locks, l)
			}
		}
	}
	slices.SortFunc(locks, func(a, b view.FileLock) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.FilePath, b.FilePath))
	})
	return locks
}
