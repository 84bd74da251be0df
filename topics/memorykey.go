package topics

import (
	"strings"
	"unicode/utf8"
)

// PlaceholderUser is the user ID that a chat door of FlightDeck writes for a caller without one.
const PlaceholderUser = "user_42"

// MemoryKey returns the key of the memory that a session's records belong to: the ID of its user. Without a user, or with
// PlaceholderUser, it is the session ID, because callers who are not known must not share a memory. So it is with an ID that
// cannot be the key of a row, for which every record would be dead-lettered: one that contains NUL, for example. An ID that
// begins as the keys of SharedMemoryKey has no memory of its own either.
func MemoryKey(session string, user *string) string {
	if user == nil || strings.TrimSpace(*user) == "" || *user == PlaceholderUser || !isKey(*user) ||
		strings.HasPrefix(*user, sharedMemory) {
		return session
	}
	return *user
}

// sharedMemory begins the keys of SharedMemoryKey.
const sharedMemory = "session/"

// SharedMemoryKey returns the key of the memory of a conversation that several users took part in: "session/" and the session
// ID, or "session/sha256:" and the digest of an ID that is too long. It is no user's key, and no step for the model has the
// memory.
func SharedMemoryKey(session string) string { return scopeOf(sharedMemory, session) }

// isKey reports whether the groups accept a text as the key of a row. It has the rules of processors.CheckSession.
func isKey(text string) bool {
	return text != "" && len(text) <= 1024 && strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) && text != "__offset"
}
