package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// isKnown reports whether a record is the tool message that the open step wrote, judged by its raw bytes. The turn reads
// its own tool messages from message-input and ignores them; they are written for other readers. The session's row must
// be the cached one, because a different row might be unreadable, which must be reported.
func (b *binding) isKnown(c *processors.Context, raw []byte) bool {
	if _, own := c.Headers()[topics.HeaderID]; !own || !b.recent.hasSent(c.Key(), raw) {
		return false
	}
	row, ok := c.Value().(storedRow)
	return ok && b.recent.has(c.Key(), row)
}

// hasSent reports whether the open step of a session wrote a tool message with these bytes. The input of a turn's first
// step does not count: it is the user's message, and the user may send the same text again.
func (r *recent) hasSent(session string, raw []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	return ok && w.state != nil && w.state.Turn.GetStep() > 1 && w.asked.input != nil && bytes.Equal(w.asked.input, raw)
}
