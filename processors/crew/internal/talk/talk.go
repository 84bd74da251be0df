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
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/mention"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Command does what a decoded command of an agent asks for, if it is one of this package. did is what the crew's ledger should
// have; it is empty for a command that was refused, or that only asks.
func (t *Talk) Command(s *mailbox.Step, r *roster.Roster, from *roster.Member, name string, cmd any) (did []Entry, handled bool) {
	answer := ""
	switch c := cmd.(type) {
	case command.Message:
		if name == "INTERRUPT" {
			did, answer = t.interrupt(s, r, from, c.To, c.Content)
		} else {
			did, answer = t.message(s, r, from, name, c)
		}
	case command.Broadcast:
		did, answer = t.broadcast(s, r, from, c.Content)
	case command.CreateGroup:
		answer = t.createGroup(s, r, from, c)
	case command.Members:
		if name == "ADD_TO_GROUP" {
			answer = t.addToGroup(s, r, from, c)
		} else {
			answer = t.removeFromGroup(s, r, from, c)
		}
	case command.GroupMessage:
		did, answer = t.groupMessage(s, r, from, c)
	case command.React:
		answer = t.react(s, r, from, c)
	case command.Nothing:
		switch name {
		case "QUERY_PEERS":
			answer = peers(r, from)
		case "LIST_GROUPS", "QUERY_GROUPS":
			answer = t.groupsOf(from)
		default:
			return nil, false
		}
	default:
		return nil, false
	}
	if answer != "" {
		note(s, from.Id, answer)
	}
	return did, true
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

// Why a mention was not delivered.
const (
	reasonUnknown   = "unknown"
	reasonAmbiguous = "ambiguous"
)

type unresolved struct {
	Token  string `json:"token"`
	Reason string `json:"reason"`
}

type notDelivered struct {
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// undelivered reports to people that something that one of them said was not delivered.
func undelivered(s *mailbox.Step, to, reason string) {
	s.Event("crew:not_delivered", notDelivered{truncate.Characters(to, previewRunes), reason})
}

// Say delivers what a person says to an agent, or to all running agents, and to the agents that the text mentions. Each gets it
// once. A mention that names no running or idle agent, or several, is reported; the others are delivered.
func (t *Talk) Say(s *mailbox.Step, r *roster.Roster, said crewbody.Say) {
	got := map[string]bool{}
	switch to, err := r.Resolve(said.To, ""); {
	case said.To == everyone:
		t.Post(s, User, All, Broadcast, said.Text)
		for _, m := range r.GetMembers() {
			if m.Status == view.Running {
				tell(s, m.Id, said, said.Blocks)
				got[m.Id] = true
			}
		}
	case err != nil:
		undelivered(s, said.To, err.Error())
	case !reachable(to):
		undelivered(s, said.To, errEnded.Error())
	default:
		t.Post(s, User, PartyOf(to), Request, said.Text)
		tell(s, to.Id, said, said.Blocks)
		got[to.Id] = true
	}
	reported := map[string]bool{}
	for _, found := range mention.Find(said.Text) {
		m, reason := mentioned(r, found.Token)
		switch {
		case m == nil && !reported[found.Token] && len(reported) < reportLimit:
			s.Event("crew:mention_unresolved", unresolved{found.Token, reason})
			reported[found.Token] = true
		case m != nil && !got[m.Id]:
			t.Post(s, User, PartyOf(m), Request, said.Text)
			tell(s, m.Id, said, nil)
			got[m.Id] = true
		}
	}
}

// mentioned returns the running or idle agent whose ID begins with a token, or why there is none.
func mentioned(r *roster.Roster, token string) (found *roster.Member, reason string) {
	for _, m := range r.Live() {
		if !strings.HasPrefix(m.Id, token) {
			continue
		}
		if found != nil {
			return nil, reasonAmbiguous
		}
		found = m
	}
	return found, reasonUnknown
}

// tell delivers what a person says to one agent. An interrupt cannot carry blocks, so they follow it as a prompt.
func tell(s *mailbox.Step, agentID string, said crewbody.Say, blocks topics.Raw) {
	// The agent is told who wrote the text and where the person looks for an answer.
	text := "[Message from the user]: " + said.Text + "\n\nAnswer the user: write a line that has only @user, and your answer below it."
	to := mailbox.Agent(agentID)
	if said.Interrupt && blocks == nil {
		s.Send(to, crewbody.Interrupt{Text: text, FromID: user})
		return
	}
	if said.Interrupt {
		s.Send(to, crewbody.Interrupt{FromID: user})
	}
	s.Send(to, crewbody.Prompt{Text: text, Priority: true, FromID: user, Blocks: blocks})
}
