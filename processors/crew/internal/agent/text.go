package agent

import (
	"unicode/utf8"
)

// Limits of texts in a row, in bytes of JSON.
const (
	firstLimit = 96 << 10
	taskLimit  = 64 << 10
	errorLimit = 4 << 10
	// nameLimit is that of IDs, and memberLimit of all that says who an agent is. Crews and hosts stay far below them.
	nameLimit   = 1 << 10
	memberLimit = 32 << 10
)

// Limits of what is kept of an agent's text, in characters.
const (
	outputLimit  = 16_000
	previewLimit = 4_000
)

// cut returns the beginning of a text that is at most limit bytes of JSON.
func cut(text string, limit int) string {
	size := 0
	for i, r := range text {
		if size += runeSize(r, utf8.RuneLen(r)); size > limit {
			return text[:i]
		}
	}
	return text
}

// jsonSize is at least the size of a text in JSON.
func jsonSize(text string) (size int) {
	for _, r := range text {
		size += runeSize(r, utf8.RuneLen(r))
	}
	return size
}

func runeSize(r rune, n int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return n
}

// tail returns the last limit characters of a text.
func tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	i := len(text)
	for n := 0; n < limit && i > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return text[i:]
}
