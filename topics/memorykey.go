package topics

import (
	"strings"
	"unicode/utf8"
)

// PlaceholderUser is the user ID that a chat door of FlightDeck writes for a caller without one.
const PlaceholderUser = "user_42"

// MemoryKey returns the key of the memory that a session's records belong to: the ID of its user. Without a user, or with
// PlaceholderUser, it is the session ID, because callers who are not known must not share a memory. So it is with an ID that
// cannot be the key of a row, for which every record would be dead-lettered: one that contains NUL, for example.
func MemoryKey(session string, user *string) string {
	if user == nil || strings.TrimSpace(*user) == "" || *user == PlaceholderUser || !isKey(*user) {
		return session
	}
	return *user
}

// isKey reports whether the groups accept a text as the key of a row. It has the rules of processors.CheckSession.
func isKey(text string) bool {
	return text != "" && len(text) <= 1024 && strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) && text != "__offset"
}
