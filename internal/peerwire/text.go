package peerwire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Length returns the length of a text in UTF-16 code units, which is what JavaScript calls its length. The audit has lengths
// in this unit.
func Length(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// Trim removes the characters that JavaScript's trim removes from both ends of a text.
func Trim(text string) string { return strings.TrimFunc(text, isSpace) }

func isSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029,
		r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfeff:
		return true
	default:
		return false
	}
}

// oneLine returns a text of a peer for a line: control characters become spaces, and it is cut to max bytes.
func oneLine(text string, max int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
	if len(text) <= max {
		return text
	}
	for !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max] + "…"
}

// oneWord returns an ID of a peer for a line: characters that IDs do not need become "_", so that an ID cannot be a sentence
// that a model follows, and it is cut to max bytes.
func oneWord(id string, max int) string {
	return oneLine(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._:@/-", r) {
			return r
		}
		return '_'
	}, id), max)
}
