package text

import (
	"regexp"
	"strings"
)

// fenceLine matches the first line of a fence: what is before it, the fence and the language.
var fenceLine = regexp.MustCompile("^([ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)$")

// source returns the tokens of a Markdown text that stays Markdown. Joined, they are the text.
func source(markdown string) []token {
	s := scanner{text: markdown, spans: spansOf(markdown)}
	for s.at < len(markdown) {
		s.line()
	}
	return s.out
}

type scanner struct {
	text  string
	at    int
	spans []span // from at on, in order
	out   []token
	// fence is the fence that is open, nil for none. broken says that a line break is not written yet.
	fence  *wrapper
	marker string
	broken string
}

// line reads a line with the line break after it.
func (s *scanner) line() {
	rest := s.text[s.at:]
	length := strings.IndexByte(rest, '\n')
	next := length + 1
	if length < 0 {
		length, next = len(rest), len(rest)
	}
	text := strings.TrimSuffix(rest[:length], "\r")
	ending := rest[len(text):next]
	before, marker, after := beginsFence(text)
	switch {
	case s.fence != nil && endsFence(text, s.marker):
		s.add(token{kind: closing, out: s.broken + text, wrap: s.fence})
		s.fence, s.broken = nil, ""
	case s.fence != nil:
		s.endLine()
		s.words(text, true)
	case marker != "":
		s.endLine()
		quote := ""
		if strings.Contains(before, ">") {
			quote = before
		}
		begin := quote + marker + after + "\n"
		s.fence = &wrapper{close: "\n" + quote + marker, reopen: begin, keep: true, fence: true}
		s.marker = marker
		switch {
		case strings.TrimSpace(before) != "":
			s.add(token{kind: word, out: before, raw: before, lead: true})
		case before != "":
			s.add(token{kind: indent, out: before})
		}
		s.add(token{kind: opening, out: marker + after + ending, wrap: s.fence})
		s.at += next
		s.skipSpans()
		return
	default:
		s.endLine()
		s.marked(s.at, s.at+len(text))
	}
	s.broken = ending
	s.at += next
	s.skipSpans()
}

// beginsFence returns what is before a fence that a line opens, the fence, and what follows it; no fence if the line opens none.
func beginsFence(line string) (before, marker, after string) {
	m := fenceLine.FindStringSubmatch(line)
	if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
		return "", "", ""
	}
	return m[1], m[2], m[3]
}

// endsFence reports whether a line ends the fence.
func endsFence(line, marker string) bool {
	line = strings.TrimLeft(strings.TrimRight(line, " \t"), " \t>")
	return len(line) >= len(marker) && strings.Trim(line, marker[:1]) == ""
}

// withShortFences returns a text whose fences have three backticks. Those in the code are taken apart: see withoutFences.
func withShortFences(markdown string) string {
	var out strings.Builder
	marker := ""
	for line := range strings.Lines(markdown) {
		text := strings.TrimRight(line, "\r\n")
		before, opened, after := beginsFence(text)
		switch {
		case marker != "" && endsFence(text, marker):
			out.WriteString(text[:strings.IndexByte(text, marker[0])] + "```" + line[len(text):])
			marker = ""
		case marker != "":
			out.WriteString(withoutFences(line))
		case opened != "":
			marker = opened
			out.WriteString(before + "```" + strings.ReplaceAll(after, "`", "") + line[len(text):])
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// withoutFences returns code that does not end a block that ends at the first three backticks: an invisible character is written
// between the backticks.
func withoutFences(code string) string {
	if !strings.Contains(code, "```") {
		return code
	}
	return strings.ReplaceAll(code, "``", "`\u200b`")
}

func (s *scanner) add(t token) { s.out = append(s.out, t) }

func (s *scanner) endLine() {
	if s.broken != "" {
		s.add(token{kind: newline, out: s.broken})
		s.broken = ""
	}
}

func (s *scanner) skipSpans() {
	for len(s.spans) > 0 && s.spans[0].at < s.at {
		s.spans = s.spans[1:]
	}
}

// marked writes a part of a line with its spans.
func (s *scanner) marked(at, end int) {
	begin := true
	for at < end {
		stop := end
		if len(s.spans) > 0 {
			stop = min(end, s.spans[0].at)
		}
		if at < stop {
			s.words(s.text[at:stop], begin)
			at, begin = stop, false
			continue
		}
		m := s.spans[0]
		s.spans = s.spans[1:]
		part := s.text[m.at : m.at+m.length]
		switch {
		case m.kind == word && m.at+m.length > end: // more than one line: it can be cut
			s.words(s.text[at:end], false)
			part = s.text[at:end]
		case m.kind == word:
			s.add(token{kind: word, out: part, raw: part, solid: true})
		default:
			s.add(token{kind: m.kind, out: part, wrap: m.wrap})
		}
		at += len(part)
		begin = false
	}
}

// words writes text. begin says that it is the beginning of a line.
func (s *scanner) words(text string, begin bool) {
	words(text, func(k kind, part string) {
		if k == space && begin {
			k = indent
		}
		s.add(token{kind: k, out: part, raw: part})
		begin = k == newline
	})
}
