package topics

import (
	"strings"
	"unicode/utf8"
)

// PlaceholderUser is the user ID that a chat door of FlightDeck, or turnhttp with Config.FlightDeck, writes for a caller without one.
const PlaceholderUser = "user_42"

// MemoryKey returns the key of the memory that a session's records belong to. It is the ID of the session's user, or the session
// ID if the user has no memory of their own. These users have none:
//
//   - no user, a blank one and PlaceholderUser: callers who are not known must not share a memory;
//   - an ID that cannot be the key of a row, for example with NUL: every record for it would be dead-lettered;
//   - an ID that begins with "session/" or "anonymous/": these keys are not those of users.
//
// A session whose ID begins with one of these two texts has the key "anonymous/" and its ID instead. So no session has the key of
// another one's memory.
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
