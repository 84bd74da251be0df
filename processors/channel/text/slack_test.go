package text_test

import (
	"strings"
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

// Slack ends a block of code at the first three backticks, whatever opened it.
func TestSlackCodeIsNotEndedByAFenceInIt(t *testing.T) {
	for _, md := range []string{
		"````markdown\n# T\n\n```python\nprint(1 < 2)\n```\n\nmore\n````\n\nDone **now**.",
		"~~~\n```\ncode\n```\n~~~\n\nDone **now**.",
		"    ```\n    code\n    ```\n\nDone **now**.",
		"~~~\na ``````` b\n~~~\n\nDone **now**.",
		"- list\n\n  ````\n  ```\n  x\n  ```\n  ````\n\nDone **now**.",
	} {
		whole := text.Render(md, text.SlackMrkdwn)
		require.Equal(t, 2, strings.Count(whole, "```"), whole)
		require.True(t, strings.HasSuffix(whole, "\n```\n\nDone *now*."), whole)
		for _, max := range []int{24, 30, 40} {
			for _, part := range text.Split(md, text.SlackMrkdwn, text.Limit{Max: max, Unit: text.Runes}) {
				require.Zero(t, strings.Count(part, "```")%2, "a part has a fence that is not closed: %q", part)
			}
		}
	}
	whole := text.Render("~~~\na ```` b `` c\n~~~", text.SlackMrkdwn)
	require.Equal(t, "```\na ```` b `` c\n```", strings.ReplaceAll(whole, "\u200b", ""), "nothing else is changed")
}

// So does Discord, which knows no fence of tildes either.
func TestDiscordCodeIsNotEndedByAFenceInIt(t *testing.T) {
	for md, want := range map[string]string{
		"````markdown\n# T\n\n```python\nx\n```\n\nmore\n````\n\nDone **now**.": "```markdown\n# T\n\n`\u200b``python\nx\n`\u200b``\n\nmore\n```\n\nDone **now**.",
		"~~~go\n```\ncode\n~~~\nDone":                                           "```go\n`\u200b``\ncode\n```\nDone",
		"> ````\n> ```\n> ````\nDone":                                           "> ```\n> `\u200b``\n> ```\nDone",
		"```go\na ``` b\n```\nDone ``x``":                                       "```go\na `\u200b`` b\n```\nDone ``x``",
		"~~~ a`b\nx\n~~~":                                                       "``` ab\nx\n```",
		"```go\nfine\n```\r\n- **b** `c` ~~s~~ ``` inline ``` ":                 "```go\nfine\n```\r\n- **b** `c` ~~s~~ ``` inline ``` ",
	} {
		require.Equal(t, want, text.Render(md, text.DiscordMarkdown), md)
		require.Equal(t, want, text.Render(want, text.DiscordMarkdown), "again: %s", md)
		for _, max := range []int{24, 30, 40} {
			for _, part := range text.Split(md, text.DiscordMarkdown, text.Limit{Max: max, Unit: text.UTF16}) {
				require.Zero(t, strings.Count(part, "```")%2, "a part has a fence that is not closed: %q", part)
			}
		}
	}
	require.Equal(t, "````\n```\n````", text.Render("````\n```\n````", text.Markdown))
}
