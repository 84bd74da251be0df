package topics

import (
	"strings"
	"unicode/utf8"
)

// PlaceholderUser is the user ID that a chat door of FlightDeck writes for a caller without one.
const PlaceholderUser = "user_42"

// MemoryKey returns the key of the memory that a session's records belong to: the ID of its user. Without a user, or with
// PlaceholderUser, it is the session ID, because callers who are not known must not share a memory. So it is with an ID that
// cannot be the key of a row, for which every record would be dead-lettered: one that contains NUL, for example. A user ID that
// begins with "session/" or "anonymous/" has no memory of its own either. The key of a session whose ID begins so is
// "anonymous/" and the ID, so that no session is named like the memory of another one.
func MemoryKey(session string, user *string) string {
	if user == nil || strings.TrimSpace(*user) == "" || *user == PlaceholderUser || !isKey(*user) || isReserved(*user) {
		if isReserved(session) {
			return scopeOf(anonymousMemory, session)
		}
		return session
	}
	return *user
}

// The beginnings of keys that no user has: of SharedMemoryKey, and of sessions whose IDs begin with one of these texts.
const (
	sharedMemory    = "session/"
	anonymousMemory = "anonymous/"
)

func isReserved(id string) bool {
	return strings.HasPrefix(id, sharedMemory) || strings.HasPrefix(id, anonymousMemory)
}

// SharedMemoryKey returns the key of the memory of a conversation that several users took part in: "session/" and the session
// ID, or "session/sha256:" and the digest of an ID that is too long. It is no user's key, and no step for the model has the
// memory.
func SharedMemoryKey(session string) string { return scopeOf(sharedMemory, session) }

// isKey reports whether the groups accept a text as the key of a row. It has the rules of processors.CheckSession.
func isKey(text string) bool {
	return text != "" && len(text) <= 1024 && strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) && text != "__offset"
}
