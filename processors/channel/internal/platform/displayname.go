package platform

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name in bytes that DisplayName returns. Origins can have it.
const maxName = 256

// DisplayName returns a name as a person's client shows it: on one line, without invisible characters, and cut to 256 bytes at a
// character. A platform's name of a person is chosen by that person, so it must not make a message unusable.
func DisplayName(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)), " ")
	if len(s) <= maxName {
		return s
	}
	end := maxName
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimSpace(s[:end])
}
