package text

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/util"
)

var entity = regexp.MustCompile(`^&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)

// unescape returns the text that Markdown stands for: backslash escapes and entities are replaced.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			e := entity.FindString(s[i:])
			if e == "" {
				b.WriteByte('&')
				continue
			}
			b.WriteString(clean(html.UnescapeString(e)))
			i += len(e) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// clean returns a text in valid UTF-8, with line breaks and tabs as its only control characters. Others become U+FFFD.
func clean(s string) string {
	ok := utf8.ValidString(s)
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] >= ' ' && s[i] != 0x7f || s[i] == '\n' || s[i] == '\r' || s[i] == '\t'
	}
	if ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, s)
}
