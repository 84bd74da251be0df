package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

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
	if r.inLink {
		r.inlines(n) // an image in a link
		return
	}
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
