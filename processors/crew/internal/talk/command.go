package talk

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// Command does what a decoded command of an agent asks for, if it is one of this package. did is what the crew's ledger should
// have; it is empty for a command that was refused, or that only asks.
func (t *Talk) Command(s *mailbox.Step, r *roster.Roster, from *roster.Member, cmd any) (did []Entry, handled bool) {
	switch c := cmd.(type) {
	case command.AgentMessage:
		return t.message(s, r, from, c.To, c.Content, false), true
	case command.DirectMessage:
		return t.message(s, r, from, c.To, c.Content, true), true
	case command.Broadcast:
		return t.broadcast(s, r, from, c.Content), true
	case command.Interrupt:
		return t.interrupt(s, r, from, c.To, c.Content), true
	case command.QueryPeers:
		t.peers(s, r, from)
	case command.CreateGroup:
		t.createGroup(s, r, from, c)
	case command.AddToGroup:
		t.addToGroup(s, r, from, c)
	case command.RemoveFromGroup:
		t.removeFromGroup(s, r, from, c)
	case command.GroupMessage:
		return t.groupMessage(s, r, from, c), true
	case command.ListGroups:
		t.listGroups(s, from)
	case command.React:
		t.react(s, r, from, c)
	default:
		return nil, false
	}
	return nil, true
}
