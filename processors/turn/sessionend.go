package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveControl(e controlled) {
	cancelled := failure{topics.CodeCancelled, "cancelled"}.withReason(e.Control.Reason)
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
	case e.Control.Action == topics.ActionPurge:
		s.purge(cancelled)
	case e.Control.Action == topics.ActionEnd:
		s.endNow(e.record)
	case e.Control.Action != topics.ActionCancel:
		s.deadLetter(reasonAction)
	case !s.cancel(notBlank(e.Control.RequestID), cancelled):
		s.deadLetter(reasonNoRequest)
		s.changed = true // remember the record: a repeat must not cancel a later message
	}
}

// cancel ends the message with the request id, whether its turn is open or it waits; a nil request means the open turn.
// It reports whether there was one.
func (s *transition) cancel(request *string, f failure) bool {
	if turn := s.row.Turn; turn != nil && (request == nil || sameRequest(turn.Message.RequestId, request)) {
		s.fail(f)
		return true
	}
	for i, a := range s.row.Waiting {
		if sameRequest(a.RequestId, request) {
			s.row.Waiting = slices.Delete(s.row.Waiting, i, i+1)
			s.reject(a, f)
			return true
		}
	}
	return false
}

// purge ends the session. Accepted messages still get their output; then everything is deleted except the digests of
// applied records. Workers or a crash can still repeat these records, and a repeat must not start the session again. The
// row is deleted by timer when the digests expire.
func (s *transition) purge(f failure) {
	s.changed, s.purging = true, true
	if s.row.Turn != nil {
		s.fail(f)
	}
	for _, a := range s.row.Waiting {
		s.reject(a, f)
	}
	s.giveUpEarly(reasonPurged, func(*turnrow.Held) bool { return true })
	s.row = &turnrow.State{
		Version: rowVersion, TouchedMs: s.nowMS(), UsedRoutesMs: s.row.UsedRoutesMs,
		Causes: s.row.Causes, Requests: s.row.Requests, Calls: s.row.Calls, Steps: s.row.Steps,
	}
}

// endNow ends the session at the request of a record.
func (s *transition) endNow(control *record) {
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
		emit{Key: s.key, ID: end + "/" + sessionEnded{}.kind() + "/0", Value: sessionEnded{}},
		emit{Key: s.key, ID: end + "/" + forgotten{}.kind() + "/0", Value: forgotten{}},
	)
	s.remember(whole, at)
	cost, spent := s.row.Cost, s.row.Spent
	s.forgetConversation()
	s.row.Cost, s.row.Spent = cost, spent
}

// forgetConversation clears a session's history, cost and user. An open turn that has a response continues with its own
// conversation.
func (s *transition) forgetConversation() {
	turn := s.row.Turn
	if s.keepMemoryKey(); turn == nil { // else the model knows the history, and repeats it in its response
		s.row.MemoryKey = ""
	}
	s.storedHistory() // requires the history to be loaded, so that its parts are deleted
	if turn != nil && turn.Responded {
		turn.Tail, _ = s.history()
		turn.Shared = 0
	}
	s.row.History, s.row.HistoryLength, s.row.UserId = nil, 0, nil
	s.row.Cost, s.row.PreviousCost, s.row.ThinkCost, s.row.Spent = nil, nil, nil, nil
	s.row.Hidden, s.row.HiddenParts = nil, nil
	s.row.LastTurn = "" // there is nothing left to remember, unless a turn is open, which names itself when it ends
	if s.compacting() { // there is nothing left to summarize
		s.endCompaction()
	}
	s.changed = true // even if there was nothing: a repeat must not clear a later conversation
}

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
