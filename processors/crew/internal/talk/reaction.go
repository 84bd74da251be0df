package talk

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

type groupReaction struct {
	MessageID string `json:"messageId"`
	GroupName string `json:"groupName"`
	LeadID    string `json:"leadId"`
	AgentID   string `json:"agentId"`
	Emoji     string `json:"emoji"`
	Action    string `json:"action"`
}

// react adds a member's reaction to a message. Agents cannot take reactions back.
func (t *Talk) react(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.React) {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		note(s, from.Id, "REACT had no effect: "+problem)
		return
	}
	if problem := t.change(s, g, from.Id, c.MessageID, c.Emoji, false); problem != "" {
		note(s, from.Id, "REACT had no effect: "+problem+".")
	}
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
