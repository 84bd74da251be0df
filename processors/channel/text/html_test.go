package text_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

var (
	// telegramTag is what the Bot API takes of the tags that are used.
	telegramTag = regexp.MustCompile(`^<(/?)(b|i|s|code|pre|blockquote|a)( href="[^"<>\x00-\x20]*")?>`)
	// telegramEntity has the named entities of the Bot API.
	telegramEntity = regexp.MustCompile(`^&(amp|lt|gt|quot);`)
)

// telegramText returns the text of a message in TelegramHTML, or what the Bot API would refuse.
func telegramText(message string) (string, error) {
	var open []string
	var b strings.Builder
	for s := message; s != ""; {
		switch s[0] {
		case '<':
			m := telegramTag.FindStringSubmatch(s)
			switch {
			case m == nil:
				return "", fmt.Errorf("bad tag at %.20q", s)
			case m[1] == "" && (m[2] == "a") != (m[3] != ""):
				return "", fmt.Errorf("bad attribute at %.20q", s)
			case m[1] == "" && slices.Contains(open, m[2]):
				return "", fmt.Errorf("nested %s", m[2])
			case m[1] == "":
				open = append(open, m[2])
			case len(open) == 0 || open[len(open)-1] != m[2]:
				return "", fmt.Errorf("%s closed in %v", m[2], open)
			default:
				open = open[:len(open)-1]
			}
			s = s[len(m[0]):]
		case '&':
			e := telegramEntity.FindString(s)
			if e == "" {
				return "", fmt.Errorf("bad entity at %.20q", s)
			}
			b.WriteString(html.UnescapeString(e))
			s = s[len(e):]
		default:
			next := strings.IndexAny(s[1:], "<&")
			if next < 0 {
				next = len(s) - 1
			}
			b.WriteString(s[:next+1])
			s = s[next+1:]
		}
	}
	if len(open) > 0 {
		return "", fmt.Errorf("not closed: %v", open)
	}
	return b.String(), nil
}

// shown returns the characters of a text that are not white space and can be seen.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) ||
			unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, s)
}

// requireTelegram checks that the messages are valid and show what the text shows.
func requireTelegram(t require.TestingT, markdown string, l text.Limit) {
	whole, err := telegramText(text.Render(markdown, text.TelegramHTML))
	require.NoError(t, err)
	joined := ""
	for _, m := range text.Split(markdown, text.TelegramHTML, l) {
		part, err := telegramText(m)
		require.NoError(t, err)
		require.NotEmpty(t, shown(part))
		joined += part
	}
	if l.Max >= 400 {
		require.Equal(t, shown(whole), shown(joined))
	}
}

func FuzzTelegramHTML(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, 100)
	}
	f.Fuzz(func(t *testing.T, markdown string, limit int) {
		requireTelegram(t, markdown, text.Limit{Max: limit % 5000, Unit: text.UTF16})
		requireTelegram(t, markdown, text.Limit{Max: 4096, Unit: text.UTF16})
	})
}

func TestStarsAndCodeAreNotFormatted(t *testing.T) {
	for markdown, want := range map[string]string{
		"5 * 3":                          "5 * 3",
		"5 * 3 * 2":                      "5 * 3 * 2",
		"a * b **c":                      "a * b **c",
		"`**x** [a](https://b)`":         "<code>**x** [a](https://b)</code>",
		`[q](https://x/?a="1"&b=<2>)`:    `<a href="https://x/?a=&quot;1&quot;&amp;b=&lt;2&gt;">q</a>`,
		"[**b** `c`](https://x)":         `<a href="https://x"><b>b</b> c</a>`,
		"x <b>&amp;&nbsp;y":              "x &lt;b&gt;&amp;\u00a0y",
		"[x](javascript:a)":              "x (javascript:a)",
		"[x](tg://resolve?domain=a)":     `<a href="tg://resolve?domain=a">x</a>`,
		"[x](TG://User?id=1)":            "x (TG://User?id=1)", // it would notify the user
		"**bold *both* [l](https://x)**": `<b>bold <i>both</i> <a href="https://x">l</a></b>`,
		"> a\n> > b":                     "<blockquote>a\n\nb</blockquote>",
		"# **t**":                        "<b>t</b>",
		"a\r\nb":                         "a\nb",
	} {
		require.Equal(t, want, text.Render(markdown, text.TelegramHTML), markdown)
		_, err := telegramText(want)
		require.NoError(t, err, markdown)
	}
}
