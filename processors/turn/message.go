package turn

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveMessage(e messageArrived) {
	m := e.Message
	if blank(m.Role) {
		m.Role = new(roleUser)
	}
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
		return
	case e.hasToolRole(): // a tool message from anyone but the turn must not open a turn
		s.deadLetter(reasonForeignTool)
		return
	}
	a, wrong := accept(e, s.rules)
	if s.rules.Channels {
		m.Metadata = topics.WithoutMembers(m.Metadata, channelMember)
	}
	if s.hasTurn(a.TurnId) {
		return
	}
	if a.RequestId != nil {
		if s.knowsRequest(*a.RequestId) {
			s.deadLetter(reasonSameRequest)
			return
		}
		s.rememberRequest(*a.RequestId)
	}
	s.changed = true
	s.takeRoute(a)
	s.expectRoute(a, topics.Raw(e.headerText(topics.HeaderRoute)))
	refused, mayWait := s.mayWait(a)
	switch {
	case wrong != "":
		s.reject(a, failure{topics.CodeInvalidMessage, wrong})
	case s.row.Turn == nil:
		a.Input = topics.EncodeMessage(m)
		s.open(a, &m)
	case !mayWait:
		s.reject(a, refused)
	default:
		a.Input = topics.EncodeMessage(m)
		s.row.Waiting = append(s.row.Waiting, a)
		if !s.makeRoomUpTo(heldRecords) {
			s.stopWaiting(a)
		} else if s.rules.SupersedeGates && !a.Result {
			s.supersedeGates()
		}
	}
}

// hasToolRole reports whether a message has the role tool, which only the turn may write.
func (e messageArrived) hasToolRole() bool {
	return e.Message.Role != nil && *e.Message.Role == roleTool
}

// accept returns what the row stores of a message for its output. wrong says why the message is invalid, "" if it is not.
func accept(e messageArrived, rules rules) (a *turnrow.Accepted, wrong string) {
	m := e.Message
	a = &turnrow.Accepted{TurnId: turnID(e.Session, e.Cause), UserId: m.UserID, TimestampMs: e.At.UnixMilli()}
	if a.TimestampMs < 0 {
		// The record has no timestamp. It takes the oldest open route, as if it were the newest message.
		a.TimestampMs = latest
	}
	id, bad := requestID(m.Metadata)
	switch {
	case bad:
		wrong = "metadata.request_id is no id"
	case m.UserID != nil && len(*m.UserID) > maxID:
		a.UserId, wrong = nil, fmt.Sprintf("user_id is longer than %d bytes", maxID)
	case m.Role != nil && len(*m.Role) > maxID:
		wrong = fmt.Sprintf("role is longer than %d bytes", maxID)
	case m.Timestamp != nil && len(*m.Timestamp) > maxID:
		wrong = fmt.Sprintf("timestamp is longer than %d bytes", maxID)
	}
	a.RequestId = id
	a.Bound = id == nil && e.headerText(topics.HeaderRoute) != ""
	if rules.Channels {
		if bad := keepChannel(a, m.Metadata); wrong == "" {
			wrong = bad
		}
	}
	return a, wrong
}

// boundIDs drops the IDs of a damaged row that no record can have.
func boundIDs(a *turnrow.Accepted) {
	a.UserId, a.RequestId = boundedID(a.UserId), boundedID(a.RequestId)
}

// requestID returns the request id in a message's metadata, nil if it has none. bad reports an invalid one.
func requestID(metadata topics.Raw) (id *string, bad bool) {
	v, ok := topics.Lookup(metadata, "request_id")
	if !ok || v == nil {
		return nil, false
	}
	if v[0] == '{' || v[0] == '[' {
		return nil, true
	}
	if id = notBlank(topics.TextOf(v)); id != nil && len(*id) > maxID {
		return nil, true
	}
	return id, false
}
