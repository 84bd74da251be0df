package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A session can have messages of several users, such as those of a room. What a user pays for, and whose memory a conversation
// goes to, depends on the messages. The user that a response names counts only if neither its message nor the session has one,
// because a worker may name any.
//
// The row has the key of the memory of its history. An answer to another user's message makes it topics.SharedMemoryKey, until
// the conversation is forgotten: what one user said must not reach the memory of another. The messages of a turn that ends in an
// error are not in the history.

// keepMemoryKey remembers whose conversation the history is before the user of the row changes, if the row does not say it:
// it is imported, or from an older build.
func (s *transition) keepMemoryKey() {
	if s.rules.Memoir != nil && s.row.MemoryKey == "" && hasConversation(s.row) {
		s.row.MemoryKey = topics.MemoryKey(s.key, s.row.UserId)
	}
}

// dropMemoryKey forgets whose conversation the history is when a turn ends without one: it was cleared while the turn was open,
// and the turn has no answer.
func dropMemoryKey(s *turnrow.State) {
	if !hasConversation(s) {
		s.MemoryKey = ""
	}
}

// hasConversation reports whether the history has messages, or had some that are hidden now.
func hasConversation(s *turnrow.State) bool { return s.HistoryLength > 0 || hiddenSize(s) > 0 }

// joinMemory adds the user of the row, whose message is answered, to those of the history.
func (s *transition) joinMemory() {
	key := topics.MemoryKey(s.key, s.row.UserId)
	switch s.row.MemoryKey {
	case key:
	case "":
		if s.rules.Memoir != nil {
			s.row.MemoryKey = key
		}
	default:
		s.row.MemoryKey = topics.SharedMemoryKey(s.key)
	}
}

// memory returns the key of the memory that a conversation of the session goes to, and the ID of its user, nil if it has no user
// or several.
func (s *transition) memory(conversation topics.Raw) (key string, user *string) {
	s.keepMemoryKey()
	last := topics.MemoryKey(s.key, s.row.UserId)
	if key = s.row.MemoryKey; key == "" { // the history is empty
		key = last
	}
	shared := topics.SharedMemoryKey(s.key)
	if key != shared && s.namesOthers(conversation, key) {
		key = shared
	}
	switch key {
	case last:
		return key, s.row.UserId
	case s.key, shared:
		return key, nil
	default: // a turn of another user ended in an error
		return key, &key
	}
}

// namesOthers reports whether a conversation has messages of a user whose memory has another key. The row does not know them
// if the history is imported, or if an older build, which keeps no key, runs beside this one during a deployment.
func (s *session) namesOthers(conversation topics.Raw, key string) bool {
	elements, _ := topics.Elements(conversation)
	return slices.ContainsFunc(elements, func(raw topics.Raw) bool {
		m, err := topics.DecodeMessage(raw)
		return err == nil && (blank(m.Role) || *m.Role == roleUser) && !blank(m.UserID) && topics.MemoryKey(s.key, m.UserID) != key
	})
}
