package talk

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

type groupCreated struct {
	Name      string   `json:"name"`
	LeadID    string   `json:"leadId"`
	MemberIDs []string `json:"memberIds"`
	CreatedAt string   `json:"createdAt"`
}

type membership struct {
	Group   string `json:"group"`
	LeadID  string `json:"leadId"`
	AgentID string `json:"agentId"`
}

type groupArchived struct {
	Name   string `json:"name"`
	LeadID string `json:"leadId"`
}

func (t *Talk) find(leadID, name string) *Group {
	for _, g := range t.GetRooms() {
		if g.LeadId == leadID && g.Name == name {
			return g
		}
	}
	return nil
}

// of returns the group that an agent means by a name: that of its own lead, unless only another lead's has it as a member.
func (t *Talk) of(r *roster.Roster, m *roster.Member, name string) *Group {
	own := t.find(r.LeadOf(m), name)
	if own != nil && own.has(m.Id) {
		return own
	}
	for _, g := range t.GetRooms() {
		if g.Name == name && g.has(m.Id) {
			return g
		}
	}
	return own
}

func (g *Group) has(id string) bool {
	return slices.ContainsFunc(g.Members, func(m *GroupMember) bool { return m.Id == id })
}

// create creates a group with its lead as the first member. It returns nil if there is no room for one more.
func (t *Talk) create(s *mailbox.Step, r *roster.Roster, leadID, name string, roles, members []string) *Group {
	if len(t.Rooms) >= groupLimit {
		old := slices.IndexFunc(t.Rooms, func(g *Group) bool { return g.Archived })
		if old < 0 {
			return nil
		}
		t.Rooms = slices.Delete(t.Rooms, old, old+1)
	}
	g := &Group{Name: name, LeadId: leadID, ProjectId: r.GetProjectId(), Roles: roles, CreatedMs: s.NowMS()}
	g.join(s, leadID)
	for _, id := range members {
		g.join(s, id)
	}
	t.Rooms = append(t.Rooms, g)
	v := g.view()
	s.Event("group:created", groupCreated{v.Name, v.LeadID, v.MemberIDs, v.CreatedAt})
	return g
}

// join adds a member without an event, and reports whether it is new. A full group takes no one.
func (g *Group) join(s *mailbox.Step, id string) bool {
	if g.has(id) || len(g.Members) >= memberLimit {
		return false
	}
	g.Members = append(g.Members, &GroupMember{Id: id, AddedMs: s.NowMS()})
	return true
}

// add adds members with an event for each new one, and returns the new ones.
func (g *Group) add(s *mailbox.Step, ids []string) (added []string) {
	for _, id := range ids {
		if g.join(s, id) {
			s.Event("group:member_added", membership{g.Name, g.LeadId, id})
			added = append(added, id)
		}
	}
	return added
}

// remove removes members with an event for each, and returns them. The lead stays.
func (g *Group) remove(s *mailbox.Step, ids []string) (removed []string) {
	for _, id := range ids {
		i := slices.IndexFunc(g.Members, func(m *GroupMember) bool { return m.Id == id })
		if i < 0 || id == g.LeadId {
			continue
		}
		g.Members = slices.Delete(g.Members, i, i+1)
		s.Event("group:member_removed", membership{g.Name, g.LeadId, id})
		removed = append(removed, id)
	}
	return removed
}

// Spawned makes a new agent a member of the groups of its lead that its role belongs to. Call it after the agent is on the
// roster.
func (t *Talk) Spawned(s *mailbox.Step, r *roster.Roster, m *roster.Member) {
	for _, g := range t.GetRooms() {
		if g.Archived || g.LeadId != m.ParentId || m.ParentId == "" || !g.wants(m) {
			continue
		}
		if len(g.add(s, []string{m.Id})) > 0 {
			note(s, m.Id, g.welcome(r))
		}
	}
}

// Ended archives the groups of an agent that has ended, if all their members have. Call it after the agent's status on the
// roster is terminal.
func (t *Talk) Ended(s *mailbox.Step, r *roster.Roster, m *roster.Member) {
	for _, g := range t.GetRooms() {
		if g.Archived || !g.has(m.Id) {
			continue
		}
		alive := slices.ContainsFunc(g.Members, func(member *GroupMember) bool {
			return member.Id != m.Id && reachable(r.Find(member.Id))
		})
		if !alive {
			g.Archived = true
			s.Event("group:archived", groupArchived{g.Name, g.LeadId})
		}
	}
}
