package email

import (
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText returns the text of an HTML document. Lines in a blockquote begin with "> ". It reads tokens, not a tree, so that deep
// nesting costs nothing.
func htmlText(r io.Reader) string {
	z := html.NewTokenizer(r)
	var b strings.Builder
	hidden, quotes, space := 0, 0, false
	var in atom.Atom // the element whose content is not text
	newline := func() {
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
			b.WriteByte('\n')
		}
		space = false
	}
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if hidden > 0 {
				continue
			}
			text := string(z.Text())
			for i, word := range strings.Fields(text) {
				atStart := b.Len() == 0 || strings.HasSuffix(b.String()[b.Len()-1:], "\n")
				switch {
				case atStart && quotes > 0:
					b.WriteString(strings.Repeat(">", min(quotes, maxDepth)) + " ")
				case !atStart && (i > 0 || space || isSpace(text[0])):
					b.WriteByte(' ')
				}
				space = false
				b.WriteString(word)
			}
			space = space || text != "" && isSpace(text[len(text)-1])
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			switch tag {
			case atom.Script, atom.Style, atom.Head, atom.Title, atom.Template, atom.Noscript:
				switch {
				case kind == html.StartTagToken && hidden == 0:
					in, hidden = tag, 1
				case kind == html.EndTagToken && tag == in:
					in, hidden = 0, 0
				}
			case atom.Body:
				in, hidden = 0, 0 // an unclosed head ends here
			case atom.Blockquote:
				newline()
				if kind == html.StartTagToken {
					quotes++
				} else if kind == html.EndTagToken && quotes > 0 {
					quotes--
				}
			case atom.Br, atom.P, atom.Div, atom.Tr, atom.Li, atom.Ul, atom.Ol, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4,
				atom.H5, atom.H6, atom.Pre, atom.Hr:
				newline()
			case atom.Td, atom.Th:
				space = true
			}
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
