package operations

import (
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Control returns the record with which a person ends a turn or a session. cause is what the record is about, for example the turn
// that is canceled: the record's turntable.id derives from the action and the cause, so that a repeat, also after the record was
// dead-lettered and requeued, has no effect, and the second of two cancellations at the same time does not end the next turn. by is
// who asks for it.
func Control(catalog topics.Catalog, session string, c topics.Control, cause, by string) (processors.Outbound, error) {
	out, err := processors.OutboundOf(catalog.SessionControl, session, c, "operate/"+c.Action+"/"+cause)
	if err == nil && by != "" {
		out.Headers[topics.HeaderBy] = []byte(by)
	}
	return out, err
}
