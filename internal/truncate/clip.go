// Package truncate bounds foreign text before it gets into a record: one that is refused for its size would come again for
// ever.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// Text is a text in valid UTF-8 of at most max bytes, cut between two characters.
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

// Marked is Text with an ellipsis behind what was cut.
func Marked(text string, max int) string {
	if len(text) <= max {
		return Text(text, max)
	}
	return Text(text, max) + "…"
}
