package text

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// maxLeads is how deep quotes and lists are nested. Deeper ones have no markers.
const maxLeads = 32

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
		if len(r.leads) >= maxLeads {
			r.blocks(n, 2)
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
		if len(r.leads) >= maxLeads {
			r.blocks(c, breaks)
			continue
		}
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
	if r.d.strict {
		s = withoutFences(s)
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
