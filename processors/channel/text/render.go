package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
)

var markdownParser = goldmark.New(goldmark.WithExtensions(extension.Strikethrough)).Parser()

func parse(src []byte) ast.Node { return markdownParser.Parse(gtext.NewReader(src)) }

// renderer writes the tokens of a Markdown text in a dialect.
type renderer struct {
	src  []byte
	d    *dialect
	out  []token
	open []*wrapper
	// pending are line breaks that are written before the next text.
	pending int
	leads   []*lead
	last    rune // of the text so far, 0 at the beginning of a line
	inLink  bool
}

// lead is what the lines of a block begin with: the first one, and the others.
type lead struct {
	first, rest string
	used        bool
}

// flush writes the pending line breaks and the beginning of the line.
func (r *renderer) flush() {
	if r.pending == 0 && len(r.out) > 0 && !r.leadMissing() {
		return
	}
	if len(r.out) == 0 {
		r.pending = 0
	}
	for ; r.pending > 0; r.pending-- {
		r.add(token{kind: newline, out: "\n"})
		if r.pending > 1 { // a blank line in what was begun before
			blank := ""
			for _, l := range r.leads {
				if l.used {
					blank += l.rest
				}
			}
			r.lead(strings.TrimRight(blank, " "))
		}
	}
	begin := ""
	for _, l := range r.leads {
		if l.used {
			begin += l.rest
		} else {
			begin += l.first
			l.used = true
		}
	}
	r.lead(begin)
	r.last = 0
}

func (r *renderer) leadMissing() bool {
	for _, l := range r.leads {
		if !l.used {
			return true
		}
	}
	return false
}

func (r *renderer) lead(s string) {
	switch {
	case s == "":
	case strings.TrimSpace(s) == "":
		r.add(token{kind: indent, out: s})
	default:
		r.add(token{kind: word, out: s, raw: s, lead: true})
	}
}

func (r *renderer) add(t token) { r.out = append(r.out, t) }

// begin opens a wrapper, nil for none. It reports whether end must close it.
func (r *renderer) begin(w *wrapper) bool {
	if w == nil {
		return false
	}
	for _, other := range r.open {
		if other == w && !w.line {
			return false // markup does not contain itself
		}
	}
	if !w.line {
		r.flush()
	}
	r.open = append(r.open, w)
	r.add(token{kind: opening, out: w.open, wrap: w})
	return true
}

func (r *renderer) end() {
	w := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	r.add(token{kind: closing, out: w.close, wrap: w})
}

// pause closes the inline markup that is open. The function that it returns opens it again.
func (r *renderer) pause() func() {
	n := len(r.open)
	for n > 0 && r.open[n-1].inline {
		n--
	}
	paused := append([]*wrapper(nil), r.open[n:]...)
	for range paused {
		r.end()
	}
	return func() {
		for _, w := range paused {
			r.begin(w)
		}
	}
}

// text writes text within a line.
func (r *renderer) text(s string) {
	if s == "" {
		return
	}
	r.flush()
	words(s, func(k kind, part string) {
		if k == newline {
			k, part = space, " "
		}
		if k == space {
			r.add(token{kind: space, out: part})
			return
		}
		r.add(token{kind: word, out: r.d.escape(part), raw: part})
	})
	r.last, _ = utf8.DecodeLastRuneInString(s)
}

// breakLine ends a line in a paragraph.
func (r *renderer) breakLine() {
	if r.inLink {
		r.text(" ")
		return
	}
	resume := func() {}
	if r.d.strict {
		resume = r.pause()
	}
	r.pending = max(r.pending, 1)
	resume()
}

// blocks writes the blocks of a node, with line breaks between them.
func (r *renderer) blocks(n ast.Node, breaks int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.block(c)
		if len(r.out) > 0 {
			r.pending = max(r.pending, breaks)
		}
	}
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.heading(n)
	case *ast.Paragraph, *ast.TextBlock:
		r.inlines(n)
	case *ast.ThematicBreak:
		r.text("---")
	case *ast.FencedCodeBlock:
		r.code(r.lines(n))
	case *ast.CodeBlock:
		r.code(r.lines(n))
	case *ast.HTMLBlock:
		s := r.lines(n)
		if n.HasClosure() {
			s += "\n" + string(n.ClosureLine.Value(r.src))
		}
		for line := range strings.SplitSeq(strings.TrimRight(s, "\r\n"), "\n") {
			r.text(strings.TrimRight(line, "\r"))
			r.pending = max(r.pending, 1)
		}
	case *ast.Blockquote:
		if r.d.quote == nil || !r.d.quote.line {
			opened := r.begin(r.d.quote)
			r.blocks(n, 2)
			if opened {
				r.end()
			}
			return
		}
		r.leads = append(r.leads, &lead{first: r.d.quote.reopen, rest: r.d.quote.reopen})
		r.begin(r.d.quote)
		r.blocks(n, 2)
		r.end()
		r.leads = r.leads[:len(r.leads)-1]
	case *ast.List:
		r.list(n)
	case *ast.LinkReferenceDefinition:
	default:
		r.blocks(n, 2)
	}
}

func (r *renderer) heading(n *ast.Heading) {
	if !r.d.heading {
		if n.HasChildren() {
			r.text(strings.Repeat("#", n.Level) + " ")
		}
		r.inlines(n)
		return
	}
	if !n.HasChildren() {
		return
	}
	opened := r.begin(r.d.bold)
	r.inlines(n)
	if opened {
		r.end()
	}
}

func (r *renderer) list(n *ast.List) {
	breaks := 2
	if n.IsTight {
		breaks = 1
	}
	number := n.Start
	if r.d.renumber {
		number = 1
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker := r.d.bullet
		switch {
		case n.IsOrdered():
			marker = strconv.Itoa(number) + string(n.Marker) + " "
		case marker == "":
			marker = string(n.Marker) + " "
		}
		number++
		r.leads = append(r.leads, &lead{first: marker, rest: strings.Repeat(" ", utf8.RuneCountInString(marker))})
		if !c.HasChildren() {
			r.flush()
		}
		r.blocks(c, breaks)
		r.leads = r.leads[:len(r.leads)-1]
		r.pending = max(r.pending, breaks)
	}
}

// lines returns the text of a block of lines.
func (r *renderer) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(r.src))
	}
	return b.String()
}

// code writes lines of code as they are.
func (r *renderer) code(s string) {
	s = strings.TrimRight(s, "\r\n")
	if !visible(s) {
		return
	}
	leads := r.leads
	if r.d.fence != nil && r.d.fence.open != "" && r.leadMissing() {
		r.flush() // the marker of a list is before the code
	}
	opened := r.begin(r.d.fence)
	if opened {
		r.leads = nil
	} else {
		r.flush()
	}
	begin := true
	words(s, func(k kind, part string) {
		switch {
		case k == newline && opened:
			r.add(token{kind: newline, out: "\n"})
		case k == newline:
			r.pending = 1
			r.flush()
		case k == space && begin:
			r.add(token{kind: indent, out: part})
		case k == space:
			r.add(token{kind: space, out: part})
		default:
			r.add(token{kind: word, out: r.d.escape(part), raw: part})
		}
		begin = k == newline
	})
	if opened {
		r.end()
	}
	r.leads, r.last = leads, 0
}

// inlines writes the text of a paragraph or of markup in it.
func (r *renderer) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			if c.IsRaw() {
				r.text(string(c.Segment.Value(r.src)))
			} else {
				r.text(unescape(string(c.Segment.Value(r.src))))
			}
			if c.SoftLineBreak() || c.HardLineBreak() {
				r.breakLine()
			}
		case *ast.String:
			r.text(string(c.Value))
		case *ast.CodeSpan:
			r.span(c)
		case *ast.Emphasis:
			w := r.d.italic
			if c.Level > 1 {
				w = r.d.bold
			}
			r.markup(c, w)
		case *extast.Strikethrough:
			r.markup(c, r.d.strike)
		case *ast.Link:
			r.link(string(c.Destination), c)
		case *ast.Image:
			r.link(string(c.Destination), c)
		case *ast.AutoLink:
			url := string(c.URL(r.src))
			if c.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
				url = "mailto:" + url
			}
			r.anchor(url, string(c.Label(r.src)), r.d.escape(string(c.Label(r.src))))
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				segment := c.Segments.At(i)
				r.text(string(segment.Value(r.src)))
			}
		default:
			r.inlines(c)
		}
	}
}

// markup writes marked text.
func (r *renderer) markup(n ast.Node, w *wrapper) {
	if r.d.strict && w != nil {
		r.flush()
		if wordRune(r.last) || wordRune(r.after(n)) {
			w = nil // the platform would show the marker
		}
	}
	opened := r.begin(w)
	r.inlines(n)
	if opened {
		r.end()
	}
}

func wordRune(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }

// after returns the first character after an inline node, 0 if there is none that is text.
func (r *renderer) after(n ast.Node) rune {
	for n.NextSibling() == nil {
		n = n.Parent()
		if n == nil || n.Type() != ast.TypeInline {
			return 0
		}
	}
	n = n.NextSibling()
	for n.FirstChild() != nil {
		n = n.FirstChild()
	}
	if t, ok := n.(*ast.Text); ok {
		c, _ := utf8.DecodeRune(t.Segment.Value(r.src))
		return c
	}
	return 0
}

// span writes a code span.
func (r *renderer) span(n *ast.CodeSpan) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.src))
		}
	}
	s := strings.NewReplacer("\r\n", " ", "\n", " ").Replace(b.String())
	w := r.d.code
	if r.inLink || w != nil && r.d.strict && strings.Contains(s, "`") {
		w = nil
	}
	if w == nil {
		r.text(s)
		return
	}
	r.flush()
	resume := func() {}
	if r.d.alone {
		resume = r.pause()
	}
	opened := r.begin(w)
	r.text(s)
	if opened {
		r.end()
	}
	resume()
}

// link writes a link with its label, the children of a node.
func (r *renderer) link(url string, n ast.Node) {
	url = unescape(url)
	label := strings.TrimSpace(r.label(n, &plain))
	rendered := r.d.escape(label)
	if !r.d.plainLabels && visible(label) {
		rendered = strings.TrimSpace(r.label(n, r.d))
	}
	r.anchor(url, label, rendered)
}

// label returns the text of a link in a dialect.
func (r *renderer) label(n ast.Node, d *dialect) string {
	inner := renderer{src: r.src, d: d, inLink: true}
	inner.inlines(n)
	return join(inner.out)
}

// anchor writes a link. label is its text, and rendered the same in the dialect.
func (r *renderer) anchor(url, label, rendered string) {
	clean, ok := safeURL(url)
	if !visible(label) {
		label, rendered = clean, r.d.escape(clean)
	}
	raw := label
	if label != url && label != clean && "mailto:"+label != url && clean != "" {
		raw = label + " (" + clean + ")"
	}
	switch {
	case r.inLink:
		r.text(label)
	case !ok || r.d.link == nil:
		r.text(raw)
	default:
		r.flush()
		r.add(token{kind: word, out: r.d.link(clean, rendered), raw: raw, solid: true})
		r.last = 0
	}
}
