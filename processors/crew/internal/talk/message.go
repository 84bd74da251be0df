package talk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// message sends what one agent writes to another. DIRECT_MESSAGE only changes what the other one reads, and that the sender is told
// of the delivery.
func (t *Talk) message(s *mailbox.Step, r *roster.Roster, from *roster.Member, name string, c command.Message) (did []Entry, answer string) {
	m, err := target(r, from, c.To)
	if err != nil {
		return nil, fmt.Sprintf("%s to %q was not delivered: %v.", name, truncate.Characters(c.To, previewRunes), err)
	}
	t.Post(s, PartyOf(from), PartyOf(m), Request, c.Content)
	label, kind := "Message", ""
	if name == "DIRECT_MESSAGE" {
		label, kind = "Direct Message", "direct_message"
	}
	prompt(s, m.Id, from.Id, fmt.Sprintf("[%s from %s]: %s", label, from.Label(), c.Content))
	if kind != "" {
		answer = "Your direct message was sent to " + m.Label() + "."
	}
	return []Entry{{
		"message_sent", fmt.Sprintf("Message to %s: %s", m.Label(), truncate.Characters(c.Content, summaryRunes)), Details{Type: kind, To: m.Id},
	}}, answer
}

// broadcast sends a message to the other agents with the same lead that run or are idle: for a lead, to its own agents. The lead does
// not get it, nor do the agents of other leads. The history has it once.
func (t *Talk) broadcast(s *mailbox.Step, r *roster.Roster, from *roster.Member, content string) (did []Entry, answer string) {
	lead := r.LeadOf(from)
	if lead == "" {
		return nil, "BROADCAST had no effect: only agents with a lead, and leads, can broadcast."
	}
	t.Post(s, PartyOf(from), All, Broadcast, content)
	n := 0
	for _, m := range r.Live() {
		if m.Id == from.Id || m.ParentId != lead {
			continue
		}
		prompt(s, m.Id, from.Id, fmt.Sprintf("[Broadcast from %s]: %s", from.Label(), content))
		n++
	}
	if n == 0 {
		answer = "Your broadcast reached no agent: no other agent with your lead is running."
	}
	summary := "Broadcast: " + truncate.Characters(content, summaryRunes)
	return []Entry{{"message_sent", summary, Details{Type: "broadcast", To: everyone, RecipientCount: n}}}, answer
}

// interrupt cancels what a child does and sends it a message. Children are looked for first, because a role may also be that
// of an agent with another parent.
func (t *Talk) interrupt(s *mailbox.Step, r *roster.Roster, from *roster.Member, to, content string) (did []Entry, answer string) {
	m, err := target(&roster.Roster{Members: r.Children(from.Id)}, from, to)
	if err != nil {
		if other, otherErr := target(r, from, to); otherErr == nil {
			err = fmt.Errorf("%s is not your child, and only an agent's parent may interrupt it", other.Label())
		} else {
			err = otherErr
		}
		return nil, fmt.Sprintf("INTERRUPT of %q had no effect: %v.", truncate.Characters(to, previewRunes), err)
	}
	t.Post(s, PartyOf(from), PartyOf(m), Request, content)
	s.Send(mailbox.Agent(m.Id), crewbody.Interrupt{
		Text: fmt.Sprintf("[Interrupt from %s]: %s", from.Label(), content), FromID: from.Id,
	})
	summary := fmt.Sprintf("Interrupted %s: %s", m.Label(), truncate.Characters(content, summaryRunes))
	return []Entry{{"agent_interrupted", summary, Details{To: m.Id}}}, "You interrupted " + m.Label() + "."
}

// peers are an agent's parent and the other children of its parent.
func peers(r *roster.Roster, from *roster.Member) (text string) {
	for _, m := range r.GetMembers() {
		parent := m.Id == from.ParentId
		sibling := from.ParentId != "" && m.ParentId == from.ParentId
		if m.Id == from.Id || !reachable(m) || !parent && !sibling {
			continue
		}
		text += fmt.Sprintf("\n- %s: %s", m.Label(), m.Status)
		if parent {
			text += ", your parent"
		}
		if m.Task != "" {
			text += ", working on: " + truncate.Characters(m.Task, previewRunes)
		}
	}
	if text == "" {
		text = "\nYou have no peers."
	}
	return "Your peers:" + text
}

// Dropped tells the sender of a message that the agent it was for could not take it.
func (t *Talk) Dropped(s *mailbox.Step, r *roster.Roster, d crewbody.Dropped) {
	if d.FromID == user {
		undelivered(s, d.AgentID, d.Reason)
		return
	}
	from := r.Find(d.FromID)
	if !reachable(from) {
		return
	}
	note(s, from.Id, fmt.Sprintf("Your message to %s was not delivered: %s.", nameOf(r, d.AgentID), d.Reason))
}

// The types of messages.
const (
	Request   = "request"
	Response  = "response"
	Broadcast = "broadcast"
)

// Party is a sender or a receiver of a message as events show it.
type Party struct{ ID, Role string }

// The parties that are no agents.
var (
	User   = Party{user, "User"}
	System = Party{system, "System"}
	All    = Party{everyone, "Crew"}
)

// PartyOf returns an agent as a party.
func PartyOf(m *roster.Member) Party { return Party{m.Id, m.RoleName} }

type messageSent struct {
	From     string `json:"from"`
	FromRole string `json:"fromRole"`
	To       string `json:"to"`
	ToRole   string `json:"toRole"`
	Content  string `json:"content"`
}

// Post writes the events of a message and returns the message. It does not deliver the message. A crew that says something to
// an agent in the name of another, such as a report, calls Post too, so that the history has it.
func (t *Talk) Post(s *mailbox.Step, from, to Party, kind, content string) view.BusMessage {
	m := view.BusMessage{
		ID: s.NewID("msg"), From: from.ID, To: to.ID, Type: kind, Content: content, Timestamp: view.Time(s.NowMS()),
	}
	s.Event("bus:message", struct {
		Message view.BusMessage `json:"message"`
	}{m})
	shown := to.ID
	if shown == everyone {
		shown = "all"
	}
	s.Event("agent:message_sent", messageSent{from.ID, from.Role, shown, to.Role, content})
	return m
}

// prompt delivers the text of one agent to another.
func prompt(s *mailbox.Step, to, fromID, text string) {
	s.Send(mailbox.Agent(to), crewbody.Prompt{Text: text, FromID: fromID})
}

// note tells an agent something in the name of the crew.
func note(s *mailbox.Step, to, text string) {
	s.Send(mailbox.Agent(to), crewbody.Note{Text: "[System] " + text})
}

// reachable reports whether a message can be delivered. An agent that starts gets it when its session is ready.
func reachable(m *roster.Member) bool { return m != nil && !view.Ended(m.Status) }

var (
	errSelf   = errors.New("that is you")
	errEnded  = errors.New("the agent has ended")
	errPerson = errors.New("the user reads your text: write a line that has only @user, and your message below it")
)

// target returns the agent that another one means. Unlike the roster it also knows agents that are starting, by the beginning
// of their IDs: a lead knows the ID before the agent's session is ready.
func target(r *roster.Roster, from *roster.Member, name string) (*roster.Member, error) {
	switch strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@")) {
	case user, human:
		return nil, errPerson
	}
	m, err := r.Resolve(name, from.Id)
	if errors.Is(err, roster.ErrUnknown) {
		if starting := startingWith(r, name); starting != nil {
			m, err = starting, nil
		}
	}
	switch {
	case err != nil:
		return nil, err
	case m.Id == from.Id:
		return nil, errSelf
	case !reachable(m):
		return nil, errEnded
	}
	return m, nil
}

// shortest is the shortest beginning of an ID that names an agent.
const shortest = 4

// startingWith returns the only agent of the crew that has not ended and whose ID begins so, nil if there is none.
func startingWith(r *roster.Roster, name string) (found *roster.Member) {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if len(name) < shortest {
		return nil
	}
	for _, m := range r.GetMembers() {
		if !reachable(m) || !strings.HasPrefix(m.Id, name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}
