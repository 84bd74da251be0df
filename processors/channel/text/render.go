package text

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gtext "github.com/yuin/goldmark/text"
)

var markdownParser = goldmark.New(goldmark.WithExtensions(extension.Strikethrough)).Parser()

// parse returns the nodes of a Markdown text. It reports false if the text cannot be parsed in a reasonable time.
func parse(src []byte) (ast.Node, bool) {
	if !tame(src) {
		return nil, false
	}
	return markdownParser.Parse(gtext.NewReader(src)), true
}

// document writes a Markdown text, or what cannot be parsed as it is.
func (r *renderer) document() {
	if n, ok := parse(r.src); ok {
		r.blocks(n, 2)
		return
	}
	r.raw()
}

// raw writes the text as it is.
func (r *renderer) raw() {
	words(string(r.src), func(k kind, part string) {
		switch k {
		case word:
			r.add(token{kind: word, out: r.d.escape(part), raw: part})
		default:
			r.add(token{kind: k, out: part})
		}
	})
}

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
