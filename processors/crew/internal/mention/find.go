package mention

import (
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Mention is a reference to an agent in a text.
type Mention struct {
	// Token is what stands after @.
	Token string
	// Start and End are where the mention begins, with @, and ends, in bytes.
	Start, End int
}

// idToken is @ and the beginning of an ID. Longer and upper-case ones are not: the word goes on.
var idToken = regexp.MustCompile(`@([0-9a-f]{4,8})\b`)

// markdown parses as clients render, so that both agree on what is code.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()

// code is markdown without emphasis and links, which change nothing about what is code. Their parsers need time that grows with the
// square of the text: minutes for a text that a record can have.
var code = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParser(parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400)),
	parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
))).Parser()

// Find returns the mentions for delivery: @ and 4 to 8 hexadecimal digits in lower case, in the order of the text. What is code in
// Markdown is left out, and so is text like the address of an e-mail.
func Find(message string) []Mention {
	found := scan(message, idToken, 0, len(message))
	if len(found) == 0 {
		return nil
	}
	spans := codeRanges(message)
	kept := found[:0]
	for _, m := range found {
		if !within(m, spans) {
			kept = append(kept, m)
		}
	}
	return kept
}

// scan returns the matches of a pattern between two bytes of a text that begin a word.
func scan(message string, pattern *regexp.Regexp, start, end int) (found []Mention) {
	for _, m := range pattern.FindAllStringSubmatchIndex(message[start:end], -1) {
		m := Mention{Token: message[start+m[2] : start+m[3]], Start: start + m[0], End: start + m[1]}
		if beginsWord(message[:m.Start]) && endsWord(message[m.End:]) {
			found = append(found, m)
		}
	}
	return found
}

// beginsWord reports whether @ after a text does not belong to the text's last word, as in an e-mail address.
func beginsWord(before string) bool {
	r, size := utf8.DecodeLastRuneInString(before)
	switch r {
	case '.', '+', '-', '%':
		r, _ = utf8.DecodeLastRuneInString(before[:len(before)-size])
	}
	return !isWord(r)
}

// endsWord reports whether a word does not go on with letters outside ASCII, which \b takes for the word's end.
func endsWord(after string) bool {
	r, _ := utf8.DecodeRuneInString(after)
	return !isWord(r)
}

func isWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// span is a part of a text in bytes.
type span struct{ start, end int }

func within(m Mention, spans []span) bool {
	for _, s := range spans {
		if m.Start < s.end && m.End > s.start {
			return true
		}
	}
	return false
}

// codeRanges returns where a text is code: spans, fences and indented blocks.
func codeRanges(message string) (found []span) {
	source := []byte(message)
	_ = ast.Walk(code.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					found = append(found, span{t.Segment.Start, t.Segment.Stop})
				}
			}
		case *ast.FencedCodeBlock:
			if n.Info != nil {
				found = append(found, span{n.Info.Segment.Start, n.Info.Segment.Stop})
			}
			found = append(found, lines(n)...)
		case *ast.CodeBlock:
			found = append(found, lines(n)...)
		}
		return ast.WalkContinue, nil
	})
	return found
}

func lines(n ast.Node) (found []span) {
	all := n.Lines()
	for i := range all.Len() {
		found = append(found, span{all.At(i).Start, all.At(i).Stop})
	}
	return found
}
