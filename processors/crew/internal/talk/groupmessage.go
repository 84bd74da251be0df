package talk

import (
	"fmt"
	"slices"

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
func (t *Talk) groupMessage(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.GroupMessage) (did []Entry, answer string) {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		return nil, "GROUP_MESSAGE was not delivered: " + problem
	}
	n := t.post(s, r, g, PartyOf(from), c.Content)
	return []Entry{{
		"group_message", fmt.Sprintf("Message to the group %q: %s", g.Name, truncate.Characters(c.Content, summaryRunes)),
		Details{GroupName: g.Name, RecipientCount: n},
	}}, fmt.Sprintf("Your message to the group %q was sent to %d agents.", g.Name, n)
}

// GroupSay is what a person writes to a group, or the person's reaction to a message of it. The person becomes a member.
func (t *Talk) GroupSay(s *mailbox.Step, r *roster.Roster, said crewbody.GroupSay) {
	at := slices.IndexFunc(t.GetRooms(), func(g *Group) bool { return g.Name == said.Group && !g.Archived }) // the oldest
	if at < 0 {
		undelivered(s, said.Group, "there is no such group, or it is archived")
		return
	}
	g := t.Rooms[at]
	g.add(s, []string{human})
	if said.Emoji == "" {
		t.post(s, r, g, Party{human, "Human"}, said.Text)
		return
	}
	if problem := t.change(s, g, human, said.MessageID, said.Emoji, said.Remove); problem != "" {
		undelivered(s, said.Group, problem)
	}
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

type groupReaction struct {
	MessageID string `json:"messageId"`
	GroupName string `json:"groupName"`
	LeadID    string `json:"leadId"`
	AgentID   string `json:"agentId"`
	Emoji     string `json:"emoji"`
	Action    string `json:"action"`
}

// react adds a member's reaction to a message. Agents cannot take reactions back.
func (t *Talk) react(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.React) (answer string) {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		return "REACT had no effect: " + problem
	}
	if problem := t.change(s, g, from.Id, c.MessageID, c.Emoji, false); problem != "" {
		return "REACT had no effect: " + problem + "."
	}
	return ""
}

// change adds or removes a reaction to a kept message of a group, the newest if messageID is empty. It returns why it did not.
func (t *Talk) change(s *mailbox.Step, g *Group, by, messageID, emoji string, remove bool) (problem string) {
	m := g.message(messageID)
	switch {
	case m == nil:
		return fmt.Sprintf("the group %q does not keep such a message", g.Name)
	case len(emoji) > emojiBytes:
		return "an emoji is shorter"
	}
	action := "add"
	if remove {
		action, problem = "remove", m.unreact(by, emoji)
	} else {
		problem = m.react(by, emoji)
	}
	if problem != "" {
		return problem
	}
	s.Event("group:reaction", groupReaction{m.Id, g.Name, g.LeadId, by, emoji, action})
	t.forget()
	return ""
}

func (g *Group) message(id string) *GroupMessage {
	for i := len(g.Messages) - 1; i >= 0; i-- {
		if id == "" || g.Messages[i].Id == id {
			return g.Messages[i]
		}
	}
	return nil
}

func (m *GroupMessage) reaction(emoji string) int {
	return slices.IndexFunc(m.Reactions, func(r *Reaction) bool { return r.Emoji == emoji })
}

func (m *GroupMessage) react(by, emoji string) (problem string) {
	i := m.reaction(emoji)
	switch {
	case i >= 0 && slices.Contains(m.Reactions[i].AgentIds, by):
		return "this reaction is there already"
	case i >= 0:
		m.Reactions[i].AgentIds = append(m.Reactions[i].AgentIds, by)
	case len(m.Reactions) >= emojiLimit:
		return fmt.Sprintf("a message has at most %d different reactions", emojiLimit)
	default:
		m.Reactions = append(m.Reactions, &Reaction{Emoji: emoji, AgentIds: []string{by}})
	}
	return ""
}

func (m *GroupMessage) unreact(by, emoji string) (problem string) {
	i := m.reaction(emoji)
	if i < 0 || !slices.Contains(m.Reactions[i].AgentIds, by) {
		return "there is no such reaction"
	}
	ids := m.Reactions[i].AgentIds
	at := slices.Index(ids, by)
	m.Reactions[i].AgentIds = slices.Delete(ids, at, at+1)
	if len(m.Reactions[i].AgentIds) == 0 {
		m.Reactions = slices.Delete(m.Reactions, i, i+1)
	}
	return ""
}
