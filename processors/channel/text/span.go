package text

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// span is markup in the source of a Markdown text: the beginning or the end of a wrapper, or a link.
type span struct {
	at, length int
	kind       kind // opening, closing, or word for a link
	wrap       *wrapper
}

// spansOf returns the inline markup of a Markdown text, in order and nested.
func spansOf(markdown string) []span {
	f := finder{src: markdown, ends: map[ast.Node]int{}}
	if n, ok := parse([]byte(markdown)); ok {
		f.children(n, 0, len(markdown))
	}
	return f.spans
}

type finder struct {
	src   string
	spans []span
	ends  map[ast.Node]int // of inline nodes
}

// children finds the markup under a node between two positions. Markup whose position is not certain is left out: it is text.
func (f *finder) children(n ast.Node, from, to int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		begin, inner, innerEnd, end := f.extent(c)
		switch {
		case c.Type() != ast.TypeInline:
			f.children(c, from, to)
			continue
		case begin < from || end > to || inner > innerEnd || end <= begin:
			continue
		}
		switch c.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink:
			f.spans = append(f.spans, span{at: begin, length: end - begin, kind: word})
		default:
			marker := f.src[begin:inner]
			w := &wrapper{close: f.src[innerEnd:end], reopen: marker, keep: c.Kind() == ast.KindCodeSpan, inline: true}
			f.spans = append(f.spans, span{at: begin, length: inner - begin, kind: opening, wrap: w})
			f.children(c, inner, innerEnd)
			f.spans = append(f.spans, span{at: innerEnd, length: end - innerEnd, kind: closing, wrap: w})
		}
		from = end
	}
}

// extent returns where an inline node begins and ends, and its text in it. end is 0 if that is not known.
func (f *finder) extent(n ast.Node) (begin, inner, innerEnd, end int) {
	begin = n.Pos()
	if begin < 0 || begin >= len(f.src) {
		return 0, 0, 0, 0
	}
	switch n := n.(type) {
	case *ast.Emphasis:
		return f.delimited(n, begin, n.Level)
	case *extast.Strikethrough:
		return f.delimited(n, begin, run(f.src[begin:], '~'))
	case *ast.CodeSpan:
		ticks := run(f.src[begin:], '`')
		inner = begin + ticks
		for at := inner; ticks > 0 && at < len(f.src); {
			next := strings.IndexByte(f.src[at:], '`')
			if next < 0 {
				break
			}
			at += next
			if m := run(f.src[at:], '`'); m != ticks {
				at += m
				continue
			}
			return begin, inner, at, at + ticks
		}
	case *ast.AutoLink:
		if next := strings.IndexByte(f.src[begin:], '>'); f.src[begin] == '<' && next > 0 {
			return begin, begin + 1, begin + next, begin + next + 1
		}
	case *ast.Link, *ast.Image:
		if f.src[begin] != '[' && !strings.HasPrefix(f.src[begin:], "![") {
			return 0, 0, 0, 0
		}
		return begin, begin + 1, begin + 1, f.linkEnd(n, begin)
	}
	return 0, 0, 0, 0
}

// delimited returns the extent of text between two runs of n equal characters.
func (f *finder) delimited(n ast.Node, begin, length int) (int, int, int, int) {
	last := f.end(n.LastChild())
	if last <= begin || last+length > len(f.src) || begin+length > last || length == 0 {
		return 0, 0, 0, 0
	}
	marker := f.src[begin : begin+length]
	if !strings.Contains("* ** _ __ ~ ~~", marker) || f.src[last:last+length] != marker {
		return 0, 0, 0, 0
	}
	return begin, begin + length, last, last + length
}

// end returns where a node ends, 0 if that is not known.
func (f *finder) end(n ast.Node) int {
	if n == nil {
		return 0
	}
	if t, ok := n.(*ast.Text); ok {
		return t.Segment.Stop
	}
	if n.Type() != ast.TypeInline {
		return 0
	}
	end, known := f.ends[n]
	if !known {
		_, _, _, end = f.extent(n)
		f.ends[n] = end
	}
	return end
}

// linkEnd returns where a link that begins at a bracket ends, 0 if that is not known.
func (f *finder) linkEnd(n ast.Node, begin int) int {
	at := f.end(n.LastChild())
	if n.LastChild() == nil {
		at = begin + strings.IndexByte(f.src[begin:], '[') + 1
	}
	if at <= begin || at >= len(f.src) || f.src[at] != ']' {
		return 0
	}
	at++
	if at == len(f.src) || f.src[at] != '(' {
		return at // a reference
	}
	depth := 0
	for ; at < len(f.src); at++ {
		switch f.src[at] {
		case '\\':
			at++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return 0
}

// run returns how often a text begins with a character.
func run(s string, c byte) int { return len(s) - len(strings.TrimLeft(s, string(c))) }
