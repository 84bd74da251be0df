package text

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// kind is what a token is.
type kind int

const (
	word    kind = iota // text without white space, or a link
	space               // white space within a line: a cut can replace it
	newline             // one line break: a cut can replace it
	indent              // white space at the beginning of a line
	opening             // the markup at the beginning of a wrapper
	closing             // the markup at its end
)

// token is a part of a rendered text. A cut falls between tokens, or into a word that is too long.
type token struct {
	kind kind
	out  string // rendered
	// raw is what a word is if it has to be cut: text that is not rendered.
	raw string
	// lead says that the word is the marker at the beginning of a line.
	lead bool
	// solid says that the word is a link, of which raw is only the text.
	solid bool
	wrap  *wrapper // of opening and closing
}

// wrapper is markup around tokens. It is closed at the end of a message and opened again in the next one.
type wrapper struct {
	open, close string
	// reopen is open in the next message.
	reopen string
	// keep says that a cut between the words of the wrapper is the last choice.
	keep bool
	// fence says that the wrapper contains lines of code.
	fence bool
	// line says that the wrapper is a marker at the beginning of each line.
	line bool
	// inline says that the wrapper is markup within a line.
	inline bool
}

func pair(open, close string) *wrapper {
	return &wrapper{open: open, close: close, reopen: open, inline: true}
}

// join returns the rendered text.
func join(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.out)
	}
	return b.String()
}

// maxCluster is the longest grapheme cluster in bytes. No one writes longer ones on purpose, and every cut into one would read all of it.
const maxCluster = 1 << 10

// cluster returns the length of the first grapheme cluster of a text.
func cluster(s string) int {
	if len(s) < 2 || s[0] < 0x80 && s[1] < 0x80 && s[0] != '\r' {
		return min(1, len(s))
	}
	c, _, _, _ := uniseg.FirstGraphemeClusterInString(s[:min(len(s), maxCluster)], -1)
	return len(c)
}

// spaceCluster reports whether a grapheme cluster is white space at which a line can be broken.
func spaceCluster(c string) bool { return c == " " || c == "\t" || c == "\u3000" }

// lineBreak reports whether a grapheme cluster is a line break.
func lineBreak(c string) bool { return c == "\n" || c == "\r\n" || c == "\r" }

// maxPart bounds the parts of words in bytes, so that the time to split a text without white space grows only with its length.
const maxPart = 4 << 10

// words calls yield for each run of words, white space and line breaks of a text.
func words(s string, yield func(k kind, part string)) {
	classify := func(c string) kind {
		switch {
		case spaceCluster(c):
			return space
		case lineBreak(c):
			return newline
		}
		return word
	}
	for len(s) > 0 {
		n := cluster(s)
		k := classify(s[:n])
		for n < len(s) && k != newline && n < maxPart {
			m := cluster(s[n:])
			if classify(s[n:n+m]) != k {
				break
			}
			n += m
		}
		yield(k, s[:n])
		s = s[n:]
	}
}

// visible reports whether a platform shows anything for a text.
func visible(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && !unicode.IsControl(r) &&
			!unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return true
		}
	}
	return false
}

// sentence reports whether a word ends a sentence.
func sentence(s string) bool {
	s = strings.TrimRight(s, `"')]}»”’*_~`)
	for _, end := range [...]string{".", "!", "?", "…", "。", "！", "？", ":", ";"} {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}
