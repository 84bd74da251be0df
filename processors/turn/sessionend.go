package turn

import "github.com/turntable-streams/turntable/topics"

// With Config.Memoir a session ends when it has had no record for Memoir.After: its conversation goes to the memory of its
// user (see sessionuser.go), and the row forgets it. Both are one step of the row, so no response and no message can come between them: one that
// is read before the end postpones it, and one that is read after the end belongs to a new conversation.
//
// A session with something open does not end: a turn, a waiting message, a reply route, a held record, or a gate of another
// requester. Nor does a session without a turn since its last end, whose conversation is empty.
//
// The IDs of the end are derived from the last turn and the conversation, and the times in its records from the row, so that a
// repeat after a crash is equal. At least once, a crash can take the row back to before the end: if the session then goes on, it
// ends again later, and those snapshots have the whole conversation. The last turn alone is not enough for the IDs: if the row goes
// back to before its response, the turn may time out this time, or be answered where it timed out before.

// postponeEnd makes a record that changed nothing, such as one that is dead-lettered, count as activity of a session that
// would end. It reports whether the row must be written.
func (s *transition) postponeEnd() bool {
	if _, ends := s.endsAt(); !ends || !within(s.row, max(s.rowLimit, s.oversize)) {
		return false
	}
	s.changed, s.row.TouchedMs = true, s.nowMS()
	return true
}

// endNow ends the session at the request of a record.
func (s *transition) endNow(control *Record) {
	if s.rules.Memoir == nil {
		s.deadLetter(reasonEndOff)
		return
	}
	s.changed = true // remembered also if it cannot end now: a repeat must not end a later conversation
	if _, ends := s.endsAt(); !ends {
		s.deadLetter(reasonNotEnded)
		return
	}
	at := control.At.UnixMilli()
	if at < 0 { // the record has no timestamp
		at = s.nowMS()
	}
	s.endSession(at)
}

// endSession writes the end of the session and its conversation, and forgets the conversation. What is remembered of records
// stays, as does the cost. at is the time of the end, in milliseconds since the epoch.
func (s *transition) endSession(at int64) {
	whole := s.storedHistory()
	if hidden := s.hiddenConversation(); hidden != nil {
		whole = topics.Splice(hidden, whole)
	}
	if s.err != nil {
		return
	}
	end := s.endID(whole)
	s.effects = append(s.effects,
		Emit{Key: s.key, ID: end + "/" + SessionEnded{}.kind() + "/0", Value: SessionEnded{}},
		Emit{Key: s.key, ID: end + "/" + Forgotten{}.kind() + "/0", Value: Forgotten{}},
	)
	s.remember(whole, at)
	cost, spent := s.row.Cost, s.row.Spent
	s.forgetConversation()
	s.row.Cost, s.row.Spent = cost, spent
}
