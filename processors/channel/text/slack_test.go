package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

func TestSlackTextIsEscapedAndCannotMention(t *testing.T) {
	for markdown, want := range map[string]string{
		"a < b & c > d":                 "a &lt; b &amp; c &gt; d",
		"<!channel> <@U1>":              "&lt;!channel&gt; &lt;@U1&gt;",
		"[x](!channel)":                 "x (!channel)",
		"[<!here>](https://x)":          "<https://x|&lt;!here&gt;>",
		"[a](https://x/a|b>c)":          "<https://x/a%7Cb%3Ec|a>",
		"[a](https://x/?a=1&b=2)":       "<https://x/?a=1&amp;b=2|a>",
		"**b** *i* _i_ ~~s~~":           "*b* _i_ _i_ ~s~",
		"foo**bar** **bar**foo (**b**)": "foobar barfoo (*b*)",
		"**two\nlines**":                "*two*\n*lines*",
		"``a ` b``":                     "a ` b",
		"5 * 3":                         "5 * 3",
		"&lt;!channel&gt;":              "&lt;!channel&gt;",
		"# T\n- a\n\n> q":               "# T\n\n- a\n\n> q",
	} {
		require.Equal(t, want, text.Render(markdown, text.SlackMrkdwn), markdown)
	}
}
