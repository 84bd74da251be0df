// Package talk is what the agents of a crew and its people say to each other: messages between two agents, broadcasts,
// interrupts, and groups. Its rules are pure: they depend on the row, the input and the step only.
//
// Every message between agents is an event bus:message, which is the history, and an event agent:message_sent. What one agent
// writes to another is a prompt of the other's row; what the crew has to say about a command is a note. Messages of groups are
// events group:message instead, and the row keeps the newest of each group for new members.
//
// A crew knows only its own agents, so nothing can be said to an agent of another crew.
package talk

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Command does what a decoded command of an agent asks for, if it is one of this package. did is what the crew's ledger should
// have; it is empty for a command that was refused, or that only asks.
func (t *Talk) Command(s *mailbox.Step, r *roster.Roster, from *roster.Member, name string, cmd any) (did []Entry, handled bool) {
	switch c := cmd.(type) {
	case command.Message:
		if name == "INTERRUPT" {
			return t.interrupt(s, r, from, c.To, c.Content), true
		}
		return t.message(s, r, from, name, c), true
	case command.Broadcast:
		return t.broadcast(s, r, from, c.Content), true
	case command.CreateGroup:
		t.createGroup(s, r, from, c)
	case command.Members:
		if name == "ADD_TO_GROUP" {
			t.addToGroup(s, r, from, c)
		} else {
			t.removeFromGroup(s, r, from, c)
		}
	case command.GroupMessage:
		return t.groupMessage(s, r, from, c), true
	case command.React:
		t.react(s, r, from, c)
	case command.Nothing:
		switch name {
		case "QUERY_PEERS":
			t.peers(s, r, from)
		case "LIST_GROUPS", "QUERY_GROUPS":
			t.listGroups(s, from)
		default:
			return nil, false
		}
	default:
		return nil, false
	}
	return nil, true
}

// Entry is what the crew's ledger says about a command that took effect. The agent is the one that wrote the command.
type Entry struct {
	// ActionType is message_sent, group_message or agent_interrupted.
	ActionType string
	Summary    string
	Details    Details
}

// Details are the details of an Entry, an object in JSON.
type Details struct {
	// Type is direct_message, broadcast or empty.
	Type           string `json:"type,omitzero"`
	To             string `json:"to,omitzero"`
	GroupName      string `json:"groupName,omitzero"`
	RecipientCount int    `json:"recipientCount,omitzero"`
}

// summaryRunes is the length of the text that a summary quotes.
const summaryRunes = 120

// The limits of a row. A name or a role is limited by package command.
const (
	groupLimit   = 32 // the oldest archived group makes room
	memberLimit  = 64 // of a group
	roleLimit    = 16 // of a group
	roleBytes    = 64
	messageLimit = 20       // of a group
	contentBytes = 4 << 10  // of a kept message
	keptBytes    = 96 << 10 // of the kept messages of all groups; the oldest makes room
	emojiLimit   = 8        // of a message
	emojiBytes   = 32
	reportLimit  = 50 // mentions of a message that are reported
	previewRunes = 100
	welcomeBytes = 500     // of each message that a new member gets
	human        = "human" // a person as the member of a group
	user         = "user"  // a person as the sender of a message
	system       = "system"
	everyone     = "*"
)

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
