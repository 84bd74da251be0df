package text

import "strings"

// Render returns a Markdown text in a format. Markdown is returned unchanged, except that invalid UTF-8 and control characters
// other than tabs and line breaks become U+FFFD. It is the one message of Split without a limit, or empty if there is none.
//
// In DiscordMarkdown only the fences of code are changed. In TelegramHTML, headings are bold, lists have bullets or numbers from 1, and HTML in the text is shown as it is. In
// SlackMrkdwn and Plain, headings, lists and quotes keep their markers. Plain has no markers of emphasis and code, and shows
// links as "text (URL)". Links with a scheme other than http, https, mailto, tel and tg, and
// those that notify a user of Telegram, are shown in the same way.
func Render(markdown string, f Format) string {
	return strings.Join(Split(markdown, f, Limit{}), "")
}

// Split renders a Markdown text in a format, see Render, and splits it into messages within a limit. It returns nil for a text of
// which nothing is visible, and no message of which nothing is visible.
//
// A message ends, in this order, after a paragraph, a line, a sentence, a word, or, if a word is longer than the limit, after a
// grapheme cluster. The white space at the cut is dropped. Markup and fences that are open at a cut are closed, and opened
// again in the next message. Links, tags, entities and surrogate pairs are not cut; a link that is longer than the limit is
// written as text. If the limit is too small for the markup around a cut, that message has none, and if it is smaller than a
// grapheme cluster, messages end after a code point. Only a code point, as an entity if it is written as one, that is itself
// longer than the limit exceeds it.
func Split(markdown string, f Format, l Limit) []string {
	markdown = clean(markdown)
	if !visible(markdown) {
		return nil
	}
	s := splitter{limit: l, escape: func(s string) string { return s }}
	switch f {
	case Markdown, DiscordMarkdown, "":
		if f == DiscordMarkdown {
			markdown = withShortFences(markdown)
		}
		if l.Fits(markdown) {
			return []string{markdown}
		}
		s.tokens = source(markdown)
	default:
		src := []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(markdown))
		r := renderer{src: src, d: dialectOf(f)}
		r.document()
		if s.tokens, s.escape = r.out, r.d.escape; !s.left() && strings.Contains(markdown, "]:") {
			r.out = nil
			r.raw() // definitions of links, which no link uses
			s.tokens = r.out
		}
	}
	return s.all()
}

// splitter cuts tokens into messages.
type splitter struct {
	tokens []token
	limit  Limit
	escape func(string) string
	// at is the first token that is in no message yet, and open are the wrappers around it.
	at   int
	open []*wrapper
}

func (s *splitter) all() (messages []string) {
	for s.skip(); s.left(); s.skip() {
		messages = append(messages, s.next())
	}
	return messages
}

// skip drops the white space at the beginning of a message, and words that cannot be seen.
func (s *splitter) skip() {
	for ; s.at < len(s.tokens); s.at++ {
		t := s.tokens[s.at]
		if t.kind == indent || t.kind == word && visible(t.out) {
			return
		}
		s.open = applied(s.open, t)
	}
}

// left reports whether there is anything to show.
func (s *splitter) left() bool {
	for _, t := range s.tokens[s.at:] {
		if t.kind == word && visible(t.out) {
			return true
		}
	}
	return false
}

// applied returns the wrappers that are open after a token. It does not change open.
func applied(open []*wrapper, t token) []*wrapper {
	switch {
	case t.kind == opening:
		return append(open[:len(open):len(open)], t.wrap)
	case closes(open, t):
		return open[:len(open)-1]
	default:
		return open
	}
}

// closes reports whether a token closes the innermost wrapper.
func closes(open []*wrapper, t token) bool {
	return t.kind == closing && len(open) > 0 && open[len(open)-1] == t.wrap
}

// opened returns the markup at the beginning of a message whose first token is t.
func opened(open []*wrapper, t token) string {
	text, fenced := "", false
	for _, w := range open {
		fenced = fenced || w.fence
	}
	for _, w := range open {
		if !w.line || !fenced && !t.lead {
			text += w.reopen
		}
	}
	return text
}

// closed returns the markup at the end of a message.
func closed(open []*wrapper) string {
	text := ""
	for i := len(open) - 1; i >= 0; i-- {
		text += open[i].close
	}
	return text
}

// next returns the next message. The token at s.at is a word or an indent.
func (s *splitter) next() string {
	c := s.measure()
	if c.end == len(s.tokens) {
		return s.emit(c.end, "")
	}
	if cut, ok := c.best(s); ok {
		return s.emit(cut, "")
	}
	return s.force(c)
}

// emit returns the message of the tokens before cut and a part of the word at it.
func (s *splitter) emit(cut int, part string) string {
	end := cut
	if part == "" {
		for end > s.at && s.tokens[end-1].kind != word && s.tokens[end-1].kind != closing {
			end--
		}
	}
	var b strings.Builder
	b.WriteString(opened(s.open, s.tokens[s.at]))
	open := s.open
	for i := s.at; i < cut; i++ {
		if i < end {
			b.WriteString(s.tokens[i].out)
			open = applied(open, s.tokens[i])
		}
		s.open = applied(s.open, s.tokens[i])
	}
	b.WriteString(part)
	s.at = cut
	if cut < len(s.tokens) {
		b.WriteString(closed(open))
	}
	return b.String()
}

// force cuts into a word, because there is nowhere else to cut.
func (s *splitter) force(c candidates) string {
	over := &s.tokens[c.end]
	if over.kind == word && !(over.solid && c.visible && s.limit.Fits(over.out)) {
		head, tail := s.part(*over, s.limit.Max-c.used)
		if head != "" && (c.visible || visible(head)) {
			text := s.emit(c.end, head)
			s.tokens[c.end] = tail
			return text
		}
	}
	if c.visible {
		return s.emit(c.end, "")
	}
	// Nothing that can be seen fits: drop what begins the line, and then the markup.
	for i := s.at; i <= c.end; i++ {
		if t := &s.tokens[i]; t.kind == indent && t.out != "" {
			t.out = ""
			return s.next()
		}
	}
	for t := s.tokens[s.at]; t.kind != word || !visible(t.out); t = s.tokens[s.at] {
		s.open = applied(s.open, t)
		s.at++
	}
	return s.bare(&s.tokens[s.at])
}

// bare returns as much of a word as fits, at least a code point, without markup. The word is what is left of it.
func (s *splitter) bare(t *token) string {
	if s.limit.Fits(t.out) {
		text := t.out
		s.at++
		return text
	}
	for t.raw != "" && !visible(t.raw[:first(t.raw)]) {
		t.raw = t.raw[first(t.raw):]
	}
	head, tail := s.part(*t, s.limit.Max)
	if head == "" {
		head, tail = s.point(*t)
	}
	*t = tail
	return head
}
