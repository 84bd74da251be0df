// Package truncate limits the length of external text before it is put into a record. A record that the broker rejects
// for its size would be retried indefinitely. It also shortens dead letters.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// Text returns text cut to at most max bytes, between two characters. Invalid UTF-8 is replaced by "?".
func Text(text string, max int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= max {
		return text
	}
	for !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}

// Within is Text with an ellipsis at the end of a text that was longer than max. The ellipsis is counted in max.
func Within(text string, max int) string {
	if len(text) <= max {
		return text
	}
	const more = "…"
	return Text(text, max-len(more)) + more
}

// Characters returns the first n characters of text, with an ellipsis appended if there are more.
func Characters(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}

// Last returns the last n characters of text.
func Last(text string, n int) string {
	start := len(text)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:]
}

// Marked is Text with an ellipsis appended to a text that was longer than max. The ellipsis is not counted in max.
func Marked(text string, max int) string {
	if len(text) <= max {
		return Text(text, max)
	}
	return Text(text, max) + "…"
}
