package text

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Prefix returns a Markdown text that begins with the name of its agent in brackets, in bold if asked for. A text that begins
// with it already, in either way, is returned unchanged, and so is one of which nothing is visible. Before a heading, a list,
// a quote or code, the name is a paragraph of its own.
func Prefix(markdown, name string, bold bool) string {
	bracket := "[" + escapeName(name) + "]"
	strong := "**" + bracket + "**"
	if name == "" || !visible(markdown) || begins(markdown, bracket) || begins(markdown, strong) {
		return markdown
	}
	if bold {
		bracket = strong
	}
	n, ok := parse([]byte(clean(markdown)))
	if !ok || n.FirstChild() == nil || n.FirstChild().Kind() != ast.KindParagraph {
		return bracket + "\n\n" + markdown
	}
	return bracket + " " + strings.TrimLeft(markdown, " \t\r\n")
}

// begins reports whether a text begins with a prefix and white space.
func begins(markdown, prefix string) bool {
	rest, ok := strings.CutPrefix(markdown, prefix)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \r\n"))
}

// escapeName returns a name without what Markdown would read as markup.
func escapeName(name string) string {
	return strings.NewReplacer("*", "", "[", "", "]", "", "`", "", "<", "", ">", "", "\\", "", "\n", " ", "\r", "").Replace(name)
}
