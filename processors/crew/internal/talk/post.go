package talk

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

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
