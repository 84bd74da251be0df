package text

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// level is how good a cut is. Lower ones are better.
type level int

const (
	paragraph level = iota
	line
	afterSentence
	between // words
	inside  // code
	levels
)

// candidates are the cuts of a message.
type candidates struct {
	// end is the first token that does not fit. used is the size of the message up to it, with what has to be closed there.
	end, used int
	// visible says that a token before end is.
	visible bool
	// cuts are the last cut of each level and fill the size of the message that ends there; 0 for none.
	cuts, fill [levels]int
}

// measure finds where the message that begins at s.at can end.
func (s *splitter) measure() (c candidates) {
	open := s.open
	size := s.limit.Count(opened(open, s.tokens[s.at]))
	closers := s.limit.Count(closed(open))
	before := ""
	for i := s.at; i < len(s.tokens); i++ {
		t := s.tokens[i]
		if c.visible && (t.kind == space || t.kind == newline) {
			l := s.level(i, open, before)
			c.cuts[l], c.fill[l] = i, size+closers
		}
		after := closers
		switch t.kind {
		case opening:
			after += s.limit.Count(t.wrap.close)
		case closing:
			if closes(open, t) {
				after -= s.limit.Count(t.wrap.close)
			}
		}
		n := s.limit.Count(t.out)
		if s.limit.Max > 0 && size+n+after > s.limit.Max {
			c.end, c.used = i, size+closers
			return c
		}
		size, closers = size+n, after
		open = applied(open, t)
		if t.kind == word {
			before = t.out
			c.visible = c.visible || visible(t.out)
		}
	}
	c.end, c.used = len(s.tokens), size
	return c
}

// level returns how good a cut is at a token, white space after the word before.
func (s *splitter) level(i int, open []*wrapper, before string) level {
	keep := false
	for _, w := range open {
		keep = keep || w.keep
	}
	switch {
	case s.tokens[i].kind == newline && i+1 < len(s.tokens) && s.tokens[i+1].kind == newline:
		return paragraph
	case s.tokens[i].kind == newline:
		return line
	case keep:
		return inside
	case sentence(before):
		return afterSentence
	default:
		return between
	}
}

// best returns the best cut. It reports false if there is none, or if the message would be short and the word after it has
// to be cut anyway.
func (c candidates) best(s *splitter) (int, bool) {
	for l := paragraph; l <= afterSentence; l++ {
		if c.cuts[l] > 0 && 2*c.fill[l] >= s.limit.Max {
			return c.cuts[l], true
		}
	}
	last := between
	for l := paragraph; l < between; l++ {
		if c.cuts[l] > c.cuts[last] {
			last = l
		}
	}
	if c.cuts[last] == 0 {
		last = inside
	}
	over := s.tokens[c.end]
	long := over.kind == word && !s.limit.Fits(over.out)
	if long && 2*c.fill[last] < s.limit.Max {
		return 0, false
	}
	return c.cuts[last], c.cuts[last] > 0
}

// part returns as much of a word as fits into room, rendered, and the rest of the word.
func (s *splitter) part(t token, room int) (string, token) {
	end, size := 0, 0
	for end < len(t.raw) {
		n := cluster(t.raw[end:])
		size += s.limit.Count(s.escape(t.raw[end : end+n]))
		if size > room {
			break
		}
		end += n
	}
	if blank := strings.LastIndexByte(t.raw[:min(end+1, len(t.raw))], ' '); blank > 0 && end < len(t.raw) {
		return s.cut(t, blank) // the text of a link has white space
	}
	return s.cut(t, lineEnd(t.raw, end))
}

// point returns the first code point of a word, or as many of its first grapheme cluster as fit, and the rest.
func (s *splitter) point(t token) (string, token) {
	whole, end := cluster(t.raw), first(t.raw)
	for end < whole {
		n := first(t.raw[end:])
		if !s.limit.Fits(s.escape(t.raw[:end+n])) {
			break
		}
		end += n
	}
	return s.cut(t, end)
}

func (s *splitter) cut(t token, end int) (string, token) {
	head := s.escape(strings.TrimRight(t.raw[:end], " "))
	t.raw = strings.TrimLeft(t.raw[end:], " ")
	t.out = s.escape(t.raw)
	t.lead, t.solid = false, false
	return head, t
}

// first returns the length of the first code point of a text.
func first(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// lineEnd returns the last position up to end at which a line can be broken, unless that is before half of it.
func lineEnd(s string, end int) int {
	at, state := 0, -1
	s = s[:min(len(s), end+utf8.UTFMax)] // a long text without a break would be read to its end
	for rest := s; rest != ""; {
		var segment string
		segment, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		if at+len(segment) > end {
			break
		}
		at += len(segment)
	}
	if 2*at < end {
		return end
	}
	return at
}
