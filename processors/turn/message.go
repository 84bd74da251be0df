package turn

import (
	"fmt"

	"github.com/turntable-streams/turntable/topics"
)

const roleTool = "tool"

func (e MessageArrived) apply(s *session) {
	m := e.Message
	switch {
	case e.tombstone():
		s.refuse(reasonTombstone)
		return
	case e.byTurn():
		// Ours was enriched when it was written; it is on the topic for its readers (R24).
		if !e.Own {
			s.refuse(reasonForeignTool)
		}
		return
	}
	a, wrong := accept(e)
	if a.RequestId != nil {
		if s.knowsRequest(*a.RequestId) {
			s.refuse(reasonSameRequest)
			return
		}
		s.rememberRequest(*a.RequestId)
	}
	s.changed = true
	s.takeRoute(a)
	switch turn := s.row.Turn; {
	case wrong != "":
		s.reject(a, failure{topics.CodeInvalidMessage, wrong})
	case turn == nil:
		a.Input = topics.EncodeMessage(m)
		s.open(a, &m)
	case s.rules.Policy == Reject:
		s.reject(a, failure{topics.CodeBusy, "another message of this session is being answered"})
	case len(s.row.Waiting) >= s.rules.QueueLimit:
		s.reject(a, queueFull(fmt.Sprintf("%d messages of this session wait already", len(s.row.Waiting))))
	default:
		a.Input = topics.EncodeMessage(m)
		s.row.Waiting = append(s.row.Waiting, a)
		if !s.makeRoomUpTo(heldRecords) {
			s.stopWaiting(a)
		}
	}
}

// byTurn reports whether a message is, or says that it is, a tool message of the turn.
func (e MessageArrived) byTurn() bool { return e.Message.Role != nil && *e.Message.Role == roleTool }

// accept makes of a message what its output will need, and says what is wrong with it.
func accept(e MessageArrived) (a *Accepted, wrong string) {
	m := e.Message
	a = &Accepted{TurnId: turnID(e.Session, e.Cause), UserId: m.UserID, TimestampMs: e.At.UnixMilli()}
	if a.TimestampMs < 0 {
		// Its producer had no clock. The oldest open route is its route then, as if it were the newest message.
		a.TimestampMs = latest
	}
	id, bad := requestID(m.Metadata)
	switch {
	case bad:
		wrong = "metadata.request_id is no id"
	case m.UserID != nil && len(*m.UserID) > maxID:
		a.UserId, wrong = nil, fmt.Sprintf("user_id is longer than %d bytes", maxID)
	case blank(m.Role):
		wrong = "message has no role"
	case len(*m.Role) > maxID:
		wrong = fmt.Sprintf("role is longer than %d bytes", maxID)
	case m.Timestamp != nil && len(*m.Timestamp) > maxID:
		wrong = fmt.Sprintf("timestamp is longer than %d bytes", maxID)
	}
	a.RequestId = id
	return a, wrong
}

// requestID is the request id in a message's metadata, nil where it has none.
func requestID(metadata topics.Raw) (id *string, bad bool) {
	v, ok := topics.Lookup(metadata, "request_id")
	if !ok || v == nil {
		return nil, false
	}
	if v[0] == '{' || v[0] == '[' {
		return nil, true
	}
	if id = named(topics.TextOf(v)); id != nil && len(*id) > maxID {
		return nil, true
	}
	return id, false
}
