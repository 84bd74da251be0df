package turn

import (
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// The turn reads three kinds of records that it wrote itself for other readers: the tool message on message-input, whose
// step opened when it was written, the failed call on tool-use-dlq, which has its result, and the tombstone on
// think-request-response of a session that has ended. It ignores them.

func (r *record) writtenByTurn() bool { return false }

// writtenByTurn reports whether the message is the tool message of a step. A tool message from anyone else has no id, and
// must not open a turn.
func (e messageArrived) writtenByTurn() bool { return e.hasToolRole() && e.Own }

// writtenByTurn reports whether the turn rejected the call. A worker's record names the call that failed.
func (e toolFailed) writtenByTurn() bool {
	_, named := namedStep(e.record, called{}.kind())
	return e.Own && !named
}

// writtenByTurn reports whether the record is the tombstone of an ended session. The session may have a new conversation since.
func (e thinkResponded) writtenByTurn() bool {
	return e.tombstone() && e.Own && strings.HasSuffix(e.Cause, "/"+forgotten{}.kind()+"/0")
}

func (deadlineCame) writtenByTurn() bool { return false }

// isOwnToolMessage reports whether a record is the tool message that the open step wrote, judged by its raw bytes, which
// saves decoding it. The session's row must be the cached one, because a different row might be unreadable, which must be
// reported.
func (b *binding) isOwnToolMessage(c *processors.Context, raw []byte) bool {
	if _, own := c.Headers()[topics.HeaderID]; !own || !b.cache.isToolMessage(c.Key(), raw) {
		return false
	}
	row, ok := c.Value().(storedRow)
	return ok && b.cache.has(c.Key(), row)
}

// isToolMessage reports whether the open step of a session wrote a tool message with these bytes. The input of a turn's
// first step does not count: it is the user's message, and the user may send the same text again.
func (c *stateCache) isToolMessage(session string, raw []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states.Get(session)
	return ok && s.state != nil && s.state.Turn.GetStep() > 1 && turnSent(s.state.Turn, s.full[prompt], raw)
}

// writtenByTurn reports whether the turn asks for the approval of a call.
func (e gateOpened) writtenByTurn() bool {
	return e.Request.Origin.Via == via && e.Request.Withdrawn == ""
}
