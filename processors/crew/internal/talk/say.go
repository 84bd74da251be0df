package talk

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/mention"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

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
	text := wrapped(said.Text)
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

// wrapped says to the agent who wrote the text and where the person looks for an answer.
func wrapped(text string) string {
	return "[Message from the user]: " + text + "\n\nAnswer the user: write a line that has only @user, and your answer below it."
}
