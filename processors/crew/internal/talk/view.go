package talk

import "github.com/turntable-streams/turntable/processors/crew/internal/view"

// Groups returns the groups that are not archived, in the order in which they were created.
func (t *Talk) Groups() []view.Group {
	groups := []view.Group{}
	for _, g := range t.GetRooms() {
		if !g.Archived {
			groups = append(groups, g.view())
		}
	}
	return groups
}

// Messages returns the kept messages of the groups with a name, archived or not, oldest first. A crew with several leads can
// have several groups of one name: each message says whose group it is of.
func (t *Talk) Messages(group string) []view.GroupMessage {
	messages := []view.GroupMessage{}
	for _, g := range t.GetRooms() {
		if g.Name != group {
			continue
		}
		for _, m := range g.Messages {
			messages = append(messages, g.viewOf(m))
		}
	}
	return messages
}

func (g *Group) view() view.Group {
	v := view.Group{
		Name: g.Name, LeadID: g.LeadId, ProjectID: g.ProjectId, Archived: g.Archived, MemberIDs: []string{},
		CreatedAt: view.Time(g.CreatedMs),
	}
	for _, m := range g.Members {
		v.MemberIDs = append(v.MemberIDs, m.Id)
	}
	return v
}

func (g *Group) viewOf(m *GroupMessage) view.GroupMessage {
	v := view.GroupMessage{
		ID: m.Id, GroupName: g.Name, LeadID: g.LeadId, FromAgentID: m.FromId, FromRole: m.FromRole, Content: m.Content,
		Reactions: map[string][]string{}, Timestamp: view.Time(m.AtMs),
	}
	for _, r := range m.Reactions {
		v.Reactions[r.Emoji] = append([]string(nil), r.AgentIds...)
	}
	return v
}
