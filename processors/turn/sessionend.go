package turn

import (
	"encoding/hex"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// With Rules.Memoir a session ends when it has had no record for Memoir.After: its conversation goes to the memory of its
// user (see sessionuser.go), and the row forgets it. Both are one step of the row, so no response and no message can come between them: one that
// is read before the end postpones it, and one that is read after the end belongs to a new conversation.
//
// A session with something open does not end: a turn, a waiting message, a reply route, a held record, or a gate of another
// requester. Nor does a session without a turn since its last end, whose conversation is empty.
//
// The IDs of the end are derived from the last turn and the conversation, and the times in its records from the row, so that a
// repeat after a crash is equal. At least once, a crash can take the row back to before the end: if the session then goes on, it
// ends again later, and that snapshot has the whole conversation. The last turn alone is not enough for the IDs: if the row goes
// back to before its response, the turn may time out this time, or be answered where it timed out before.

// endsAt returns when an idle session ends, in milliseconds since the epoch. ok is false if it does not.
func (s *transition) endsAt() (at int64, ok bool) {
	if s.rules.Memoir == nil || s.row.LastTurn == "" || s.waitsForSomething() {
		return 0, false
	}
	return s.row.TouchedMs + s.rules.Memoir.After.Milliseconds(), true
}

// waitsForSomething reports whether something of the session is open. No message waits without an open turn.
func (s *transition) waitsForSomething() bool {
	return s.row.Turn != nil || len(s.row.Routes)+len(s.row.Early)+len(s.row.OtherGates) > 0
}

// postponeEnd makes a record that changed nothing, such as one that is dead-lettered, count as activity of a session that
// would end. It reports whether the row must be written.
func (s *transition) postponeEnd() bool {
	if _, ends := s.endsAt(); !ends || !s.row.within(max(s.rowLimit, s.oversize)) {
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
	key, user := s.memory()
	snapshot := s.memoirSession(at, user)
	if snapshot.UserID != nil && *snapshot.UserID != key {
		// FlightDeck's updater writes the memory under this ID if there is one, else under the key of the record.
		snapshot.UserID = nil
	}
	if s.err != nil {
		return
	}
	d := digests.Of(ofEnd, s.key, s.row.LastTurn, string(s.row.History))
	end := hex.EncodeToString(d[:]) // no turn has this ID, so no worker takes it for a turn that has ended
	s.effects = append(s.effects,
		Emit{Key: s.key, ID: end + "/" + SessionEnded{}.kind() + "/0", Value: SessionEnded{}},
		Emit{Key: s.key, ID: end + "/" + Forgotten{}.kind() + "/0", Value: Forgotten{}},
		// The last number is that of the attempt to update the memory: the group counts on.
		Emit{Key: key, ID: end + "/" + snapshot.kind() + "/1", Value: snapshot},
	)
	cost, spent := s.row.Cost, s.row.Spent
	s.forgetConversation()
	s.row.Cost, s.row.Spent = cost, spent
}

// memoirSession returns the conversation of the session as it goes to the memory of its user, nil for none.
func (s *transition) memoirSession(at int64, user *string) MemoirSession {
	whole := s.storedHistory()
	text := topics.Timestamp(time.UnixMilli(at))
	timestamp := &text
	room := s.rules.RecordLimit - envelope - 4*s.keySize() - 4*quoted(user) - s.rules.memoryRoom(nil)
	previous := newest(whole, room)
	// FlightDeck's updater reads the conversation in another field, where there is room for what is left of the record.
	again := newest(whole, room-len(previous))
	return MemoirSession{
		SessionID: &s.key, UserID: user, Timestamp: timestamp, Messages: again,
		ThinkResponse: &topics.ThinkResponse{
			SessionID: &s.key, UserID: user, TotalSessionCost: s.row.Cost, PreviousMessages: previous, EndTurn: true,
			Timestamp: timestamp,
		},
	}
}

// newest returns the newest exchanges of a conversation that have at most limit bytes as JSON. Of an exchange that alone has
// more, it returns the newest messages.
func newest(conversation topics.Raw, limit int) topics.Raw {
	if len(conversation) > limit {
		cut := cutFront(conversation, room{bytes: max(limit, 0)}, true)
		if cut.kept == 0 {
			return newestMessages(conversation, limit)
		}
		conversation = withoutFront(conversation, cut.bytes)
	}
	if conversation == nil {
		return topics.Raw("[]")
	}
	return conversation
}

// newestMessages returns the newest messages of a conversation that have at most limit bytes as JSON.
func newestMessages(conversation topics.Raw, limit int) topics.Raw {
	spans := elementsOf(conversation)
	for i := len(spans); i > 0; i-- {
		if spans[len(spans)-1].to-spans[i-1].from+len("[]") > limit {
			spans = spans[i:]
			break
		}
	}
	if len(spans) == 0 {
		return topics.Raw("[]")
	}
	whole := append(topics.Raw("["), conversation[spans[0].from:spans[len(spans)-1].to]...)
	return append(whole, ']')
}

// onlyCostLeft reports whether only memories and the cost are left of a session that has ended.
func (s *transition) onlyCostLeft() bool { return s.rules.Memoir != nil && s.noConversationLeft() }

// memoryRoom returns how many bytes of a record for the model are kept for the memory of its user and for the record's key. A
// memory with many characters that JSON escapes can be longer: the group that adds it shortens it.
func (r Rules) memoryRoom(user *string) int {
	if r.Memoir == nil {
		return 0
	}
	return quoted(user) + r.spellings()*(r.Memoir.ContextBytes+r.Memoir.ContextBytes/8)
}
