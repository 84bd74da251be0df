package talk

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

type groupMessage struct {
	Message      view.GroupMessage `json:"message"`
	GroupName    string            `json:"groupName"`
	LeadID       string            `json:"leadId"`
	RecipientIDs []string          `json:"recipientIds"`
}

// groupMessage sends an agent's message to the members of a group.
func (t *Talk) groupMessage(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.GroupMessage) []Entry {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		note(s, from.Id, "GROUP_MESSAGE was not delivered: "+problem)
		return nil
	}
	n := t.post(s, r, g, PartyOf(from), c.Content)
	note(s, from.Id, fmt.Sprintf("Your message to the group %q was sent to %d agents.", g.Name, n))
	return []Entry{{
		"group_message", fmt.Sprintf("Message to the group %q: %s", g.Name, truncate.Characters(c.Content, summaryRunes)),
		Details{GroupName: g.Name, RecipientCount: n},
	}}
}

// GroupSay is what a person writes to a group, or the person's reaction to a message of it. The person becomes a member.
func (t *Talk) GroupSay(s *mailbox.Step, r *roster.Roster, said crewbody.GroupSay) {
	g := t.forPerson(said.Group)
	if g == nil {
		undelivered(s, said.Group, "there is no such group, or it is archived")
		return
	}
	g.add(s, []string{human})
	if said.Emoji == "" {
		t.post(s, r, g, Party{human, "Human"}, said.Text)
		return
	}
	if problem := t.change(s, g, human, said.MessageID, said.Emoji, said.Remove); problem != "" {
		undelivered(s, said.Group, problem)
	}
}

// forPerson returns the open group that a person means by a name: the oldest.
func (t *Talk) forPerson(name string) *Group {
	for _, g := range t.GetRooms() {
		if g.Name == name && !g.Archived {
			return g
		}
	}
	return nil
}

// post keeps a message of a group and delivers it to the other members that have not ended. It returns how many those are.
func (t *Talk) post(s *mailbox.Step, r *roster.Roster, g *Group, from Party, content string) int {
	m := &GroupMessage{Id: s.NewID("gmsg"), FromId: from.ID, FromRole: from.Role, Content: content, AtMs: s.NowMS()}
	v := g.viewOf(m)
	m.Content = truncate.Marked(content, contentBytes)
	g.Messages = append(g.Messages, m)
	if surplus := len(g.Messages) - messageLimit; surplus > 0 {
		g.Messages = append([]*GroupMessage(nil), g.Messages[surplus:]...)
	}
	t.forget()
	recipients := []string{}
	n := 0
	for _, member := range g.Members {
		if member.Id == from.ID {
			continue
		}
		recipients = append(recipients, member.Id)
		if reachable(r.Find(member.Id)) {
			prompt(s, member.Id, from.ID, fmt.Sprintf("[Group %q — %s]: %s", g.Name, nameAs(from.Role, from.ID), content))
			n++
		}
	}
	s.Event("group:message", groupMessage{v, g.Name, g.LeadId, recipients})
	return n
}

// nameAs is how texts call the sender of a group's message, who may be no agent.
func nameAs(role, id string) string {
	if id == human || id == system {
		return role
	}
	return role + " (" + view.ShortID(id) + ")"
}

// forget drops the oldest messages of all groups until the rest fits into the row.
func (t *Talk) forget() {
	kept := 0
	for _, g := range t.Rooms {
		for _, m := range g.Messages {
			kept += m.size()
		}
	}
	for kept > keptBytes {
		var oldest *Group
		for _, g := range t.Rooms {
			if len(g.Messages) > 0 && (oldest == nil || g.Messages[0].AtMs < oldest.Messages[0].AtMs) {
				oldest = g
			}
		}
		kept -= oldest.Messages[0].size()
		oldest.Messages = append([]*GroupMessage(nil), oldest.Messages[1:]...)
	}
}

// size is about the number of bytes of a kept message.
func (m *GroupMessage) size() int {
	n := len(m.Id) + len(m.FromId) + len(m.FromRole) + len(m.Content)
	for _, r := range m.Reactions {
		n += len(r.Emoji)
		for _, id := range r.AgentIds {
			n += len(id)
		}
	}
	return n
}
