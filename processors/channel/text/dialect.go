package text

import (
	"fmt"
	"strings"
)

// dialect is how a format writes what Markdown can say. A nil wrapper is not written.
type dialect struct {
	escape func(string) string
	// link writes a link whose URL is safe. It is nil if the format has none. label is rendered.
	link                       func(url, label string) string
	bold, italic, strike, code *wrapper
	fence, quote               *wrapper
	// heading says that headings are bold. Otherwise they keep their marker.
	heading bool
	// bullet is the marker of lists, empty for that of the text; renumber says that numbers begin at 1.
	bullet   string
	renumber bool
	// plainLabels says that the labels of links have no markup.
	plainLabels bool
	// alone says that code is in no other inline markup.
	alone bool
	// strict says that inline markup begins and ends at the edges of words and of lines, and that code has no
	// backticks: a block of code ends at the first three, so an invisible character is written between those in it.
	strict bool
}

var (
	htmlEscape  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	quoteEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace
)

var telegram = dialect{
	escape: htmlEscape,
	link: func(url, label string) string {
		return `<a href="` + quoteEscape(url) + `">` + label + "</a>"
	},
	bold: pair("<b>", "</b>"), italic: pair("<i>", "</i>"), strike: pair("<s>", "</s>"),
	code:    &wrapper{open: "<code>", close: "</code>", reopen: "<code>", keep: true, inline: true},
	fence:   &wrapper{open: "<pre><code>", close: "</code></pre>", reopen: "<pre><code>", keep: true, fence: true},
	quote:   &wrapper{open: "<blockquote>", close: "</blockquote>", reopen: "<blockquote>"},
	heading: true, bullet: "• ", renumber: true, alone: true,
}

var slack = dialect{
	escape: htmlEscape,
	link: func(url, label string) string {
		url = strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E").Replace(url)
		if label == htmlEscape(url) {
			return "<" + label + ">"
		}
		return "<" + htmlEscape(url) + "|" + label + ">"
	},
	bold: pair("*", "*"), italic: pair("_", "_"), strike: pair("~", "~"),
	code:        &wrapper{open: "`", close: "`", reopen: "`", keep: true, inline: true},
	fence:       &wrapper{open: "```\n", close: "\n```", reopen: "```\n", keep: true, fence: true},
	quote:       &wrapper{reopen: "> ", line: true},
	plainLabels: true, strict: true,
}

var plain = dialect{
	escape: func(s string) string { return s },
	quote:  &wrapper{reopen: "> ", line: true},
}

// dialectOf returns the dialect of a format other than Markdown.
func dialectOf(f Format) *dialect {
	switch f {
	case TelegramHTML:
		return &telegram
	case SlackMrkdwn:
		return &slack
	default:
		return &plain
	}
}

// safeURL returns a URL that a link can have, without white space and control characters. It reports false if its scheme is
// not one that people follow.
func safeURL(url string) (string, bool) {
	lower := strings.ToLower(url)
	ok := false
	for _, scheme := range [...]string{"https://", "http://", "mailto:", "tel:", "tg://"} {
		ok = ok || strings.HasPrefix(lower, scheme) && len(url) > len(scheme)
	}
	// In Telegram, such a link notifies the user (https://core.telegram.org/bots/api#html-style).
	ok = ok && !strings.HasPrefix(lower, "tg://user")
	var b strings.Builder
	for i := range len(url) {
		if c := url[i]; c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), ok
}
