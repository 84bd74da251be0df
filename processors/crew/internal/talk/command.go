package talk

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
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
