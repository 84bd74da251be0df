package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// isKnown reports whether a record is the turn's own tool message, which changes nothing (R24), by the bytes that the
// open step sent. The row must be the one that is kept with them: another one may not be readable.
func (b *binding) isKnown(c *processors.Context, raw []byte) bool {
	if _, own := c.Headers()[topics.HeaderID]; !own || !b.recent.hasSent(c.Key(), raw) {
		return false
	}
	row, ok := c.Value().(storedRow)
	return ok && b.recent.has(c.Key(), row)
}

// hasSent reports whether the open step of a session sent a tool message with these bytes. The input of a turn's first
// step is none: it is the user's, who may say the same again.
func (r *recent) hasSent(session string, raw []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	return ok && w.state != nil && w.state.Turn.GetStep() > 1 && w.asked.input != nil && bytes.Equal(w.asked.input, raw)
}
