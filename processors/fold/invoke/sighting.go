package invoke

import (
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxIndexed is the maximum length of the IDs of sessions, turns and requests in the index, in bytes.
	maxIndexed = maxTurnID
	// maxIndexedError is the maximum length of the text of a failed turn in the index, in bytes.
	maxIndexedError = 4 * maxErrorLen
)

// sightingIn returns what a record states about a turn; ok is false if it states nothing. It reads only the members that it
// needs, because it is called for every record.
func sightingIn(c *topics.Catalog, r processors.Inbound) (s sighting, ok bool) {
	if r.Value == nil || len(r.Key) == 0 || len(r.Key) > maxIndexed {
		return sighting{}, false
	}
	s = sighting{session: string(r.Key), partition: r.Partition, offset: r.Offset, at: r.Timestamp}
	switch r.Topic {
	case c.AgentEvents.Name():
		fields := topics.LookupAll(r.Value, "session_id", "turn_id", "request", "if_begun")
		if indexed(fields[0]) != s.session {
			return sighting{}, false
		}
		s.turn, s.request = indexed(fields[1]), requestIn(topics.LookupAll(fields[2], "latest_input")[0])
		s.ifBegun = fields[3] != nil
		return s, s.turn != ""
	case c.BatchMessages.Name():
		if indexed(topics.LookupAll(r.Value, "session_id")[0]) != s.session {
			return sighting{}, false
		}
		s.end = endIn(r.Value, r.Offset)
		s.turn = s.end.turn
		return s, s.turn != ""
	case c.MessageInput.Name():
		s.request = requestIn(r.Value)
	case c.MessageOutput.Name():
		if topics.LookupAll(r.Value, "error")[0] == nil {
			return sighting{}, false
		}
		d := c.MessageOutput.Codec().Unmarshal(r.Value)
		if d.Err != nil || d.Value.Error == nil || d.Value.RequestID == nil || len(*d.Value.RequestID) > maxIndexed {
			return sighting{}, false
		}
		s.request = *d.Value.RequestID
		failure := *d.Value.Error
		failure.Message = failure.Message[:min(len(failure.Message), maxIndexedError)]
		s.failed = &topics.Output{RequestID: &s.request, Error: &failure}
	}
	return s, s.request != ""
}

// requestIn returns the request ID in a message's metadata, empty if there is none.
func requestIn(message topics.Raw) string {
	metadata := topics.LookupAll(message, "metadata")[0]
	return indexed(topics.LookupAll(metadata, "request_id")[0])
}

// indexed returns the text of an ID, empty if it is absent or too long.
func indexed(id topics.Raw) string {
	if id == nil || len(id) > 6*maxIndexed {
		return ""
	}
	s := topics.TextOf(id)
	if s == nil || len(*s) > maxIndexed {
		return ""
	}
	return *s
}
