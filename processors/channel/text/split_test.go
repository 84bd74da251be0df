package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

var seeds = []string{
	"", " \n\t", "5 * 3", "**bold** and `code` & <b>", "a\r\nb\r\n\r\nc", "```go\nx := 1\n\ny := 2\n```\nend", "> quote\n> ```\n> code\n> ```",
	"- a\n  - b\n    1. c", "[link](https://example.com/a?b=\"c\"&d) ![i](https://x/y.png)", "👨‍👩‍👧‍👦🇩🇪e\u0301", "~~~\nopen", "***a** b*",
	"# h\n\n---\n\n<div>\nhtml\n</div>", "*a `b` **c [d](https://e) f** g*", "\xff\x00\u200b", "|a|b|\n|-|-|\n|1|2|", "- ```go\n  code\n  ```\n",
	"`` a ` b ``\n\\*x\\* &amp; &#0; <https://a.b> <a@b.c>", strings.Repeat("字", 50), strings.Repeat("a ", 100), "**" + strings.Repeat("long ", 60) + "**",
}

var formats = []text.Format{text.Markdown, text.TelegramHTML, text.SlackMrkdwn, text.Plain}

func TestTextIsCutAtTheBestPlace(t *testing.T) {
	for _, c := range []struct {
		name, markdown string
		format         text.Format
		max            int
		want           []string
	}{
		{"empty", "", text.Plain, 10, nil},
		{"nothing to see", " \n\u200b\n ", text.Markdown, 10, nil},
		{"fits", "one two", text.Plain, 7, []string{"one two"}},
		{"paragraph", "one two.\n\nthree four\nfive", text.Plain, 20, []string{"one two.\n\nthree four", "five"}},
		{"paragraph before line", "one two three\n\nfour\nfive six", text.Plain, 20, []string{"one two three", "four\nfive six"}},
		{"line", "one two\nthree four", text.Markdown, 12, []string{"one two", "three four"}},
		{"sentence before word", "One two. Three four five", text.Markdown, 15, []string{"One two.", "Three four five"}},
		{"word", "one two three", text.Markdown, 10, []string{"one two", "three"}},
		{"long word", "abcdefghij", text.Markdown, 4, []string{"abcd", "efgh", "ij"}},
		{"leading line break", "\nabcdefgh", text.Markdown, 4, []string{"abcd", "efgh"}},
		{"CRLF", "abcd\r\nefgh\r\n", text.Markdown, 5, []string{"abcd", "efgh"}},
		{
			"fence", "```go\naaaa\nbbbb\ncccc\n```\nend", text.Markdown, 19,
			[]string{"```go\naaaa\nbbbb\n```", "```go\ncccc\n```\nend"},
		},
		{"fence in a quote", "> ```\n> aaaa\n> bbbb\n> ```", text.Markdown, 22, []string{"> ```\n> aaaa\n> ```", "> ```\n> bbbb\n> ```"}},
		{"bold", "**one two three**", text.Markdown, 12, []string{"**one two**", "**three**"}},
		{"link", "see [a b](https://x) now", text.Markdown, 19, []string{"see", "[a b](https://x)", "now"}},
		{"code span", "say `a b` now", text.Markdown, 8, []string{"say", "`a b`", "now"}},
		{"tags", "**one two three**", text.TelegramHTML, 15, []string{"<b>one two</b>", "<b>three</b>"}},
		{"pre", "```\naaaa\nbbbb\n```", text.TelegramHTML, 30, []string{"<pre><code>aaaa</code></pre>", "<pre><code>bbbb</code></pre>"}},
		{"entities", "&&&&", text.TelegramHTML, 12, []string{"&amp;&amp;", "&amp;&amp;"}},
		{"link after a word", "aaaa[b](https://x)", text.TelegramHTML, 27, []string{"aaaa", `<a href="https://x">b</a>`}},
		{"long word after a short one", "x abcdefghijkl", text.Plain, 8, []string{"x abcdef", "ghijkl"}},
		{"long link", "[name](https://example.com)", text.TelegramHTML, 22, []string{"name", "(https://example.com)"}},
		{"limit below the tags", "**ab cd**", text.TelegramHTML, 5, []string{"ab", "cd"}},
		{"limit below an entity", "a&b", text.TelegramHTML, 3, []string{"a", "&amp;", "b"}},
		{"quote", "> one two three", text.SlackMrkdwn, 11, []string{"> one two", "> three"}},
		{"Slack's fence", "```go\naaaa\nbbbb\n```", text.SlackMrkdwn, 14, []string{"```\naaaa\n```", "```\nbbbb\n```"}},
	} {
		got := text.Split(c.markdown, c.format, text.Limit{Max: c.max})
		require.Equal(t, c.want, got, c.name)
	}
}

func TestLimitBelowACharacterEnds(t *testing.T) {
	for _, unit := range []text.Unit{text.Bytes, text.Runes, text.UTF16} {
		for _, f := range formats {
			require.Equal(t, []string{"é", "字", "👍"}, text.Split("é字👍", f, text.Limit{Max: 1, Unit: unit}), f)
		}
	}
	require.Equal(t, []string{"👨‍", "👩"}, text.Split("👨‍👩", text.Plain, text.Limit{Max: 8}))
}

func TestUnitsAreCounted(t *testing.T) {
	for unit, want := range map[text.Unit]int{text.Bytes: 7, text.Runes: 3, text.UTF16: 4} {
		require.Equal(t, want, text.Limit{Unit: unit}.Count("aé👍"))
	}
	require.True(t, text.Limit{}.Fits("any"))
	require.Equal(t, []string{"👍👍", "👍"}, text.Split("👍👍👍", text.Plain, text.Limit{Max: 5, Unit: text.UTF16}))
}

func TestGraphemesAreNotCut(t *testing.T) {
	family := "👨‍👩‍👧‍👦"
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{family, "🇩🇪", "e\u0301", "a", "字", "👍🏽", "क्षि"}), 1, 60).Draw(t, "s"), "")
		l := text.Limit{Max: rapid.IntRange(30, 80).Draw(t, "max")}
		rest := s
		for _, m := range text.Split(s, rapid.SampledFrom(formats).Draw(t, "f"), l) {
			require.LessOrEqual(t, len(m), l.Max)
			require.True(t, strings.HasPrefix(rest, m))
			rest = rest[len(m):]
			require.Equal(t, uniseg.GraphemeClusterCount(m)+uniseg.GraphemeClusterCount(rest), uniseg.GraphemeClusterCount(m+rest))
		}
		require.Empty(t, rest)
	})
}

// markdowns draws texts with markup.
var markdowns = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom(append([]string{
		"\n", "\n\n", " ", "\r\n", "word ", "sentence. ", "**", "*", "_", "`", "```\n", "```go\n", "~~", "> ", "- ", "1. ", "# ", "[", "](https://x.y/z)", "<", ">",
		"&", "&amp;", "é", "👍🏽", "字字字", "    ", "\\", "longlonglonglonglong", "(", ")", "![",
	}, seeds...)), 0, 60).Draw(t, "parts")
	return strings.Join(parts, "")
})

// requireSplit checks what holds for every text, format and limit.
func requireSplit(t require.TestingT, markdown string, f text.Format, l text.Limit) {
	messages := text.Split(markdown, f, l)
	whole := text.Render(markdown, f)
	for _, m := range messages {
		require.NotEmpty(t, shown(m), "an empty message")
		require.True(t, utf8.ValidString(m))
		if l.Max >= 20 { // the longest code point is an entity
			require.True(t, l.Fits(m), "%d of %d in %q", l.Count(m), l.Max, m)
		}
	}
	if f != text.Markdown { // there, markup alone is a text
		require.Equal(t, shown(whole) == "", len(messages) == 0)
	}
	if f == text.Plain && l.Max >= 20 {
		require.Equal(t, strings.ReplaceAll(shown(whole), ">", ""), strings.ReplaceAll(shown(strings.Join(messages, "")), ">", ""))
	}
}

func TestMessagesFitAndShowTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := markdowns.Draw(t, "markdown")
		l := text.Limit{Max: rapid.IntRange(1, 300).Draw(t, "max"), Unit: text.Unit(rapid.IntRange(0, 2).Draw(t, "unit"))}
		requireSplit(t, s, rapid.SampledFrom(formats).Draw(t, "format"), l)
		requireTelegram(t, s, l)
	})
}

// Without fences and emphasis, the messages of a Markdown text are parts of it, with white space between them.
func TestMarkdownMessagesAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"word ", "a.b", "\n", "\n\n", "  ", "- ", "[l](https://x)", "字", "👍🏽", "# ", "\r\n", "5 * 3",
		}), 0, 80).Draw(t, "parts"), "")
		rest := s
		for _, m := range text.Split(s, text.Markdown, text.Limit{Max: rapid.IntRange(20, 60).Draw(t, "max")}) {
			before, after, ok := strings.Cut(rest, m)
			require.True(t, ok, "%q is not in %q", m, rest)
			require.Empty(t, strings.TrimSpace(before))
			rest = after
		}
		require.Empty(t, strings.TrimSpace(rest))
	})
}

// Fences are balanced in every message.
func TestFencesAreClosedAndReopened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.StringMatching(`([a-z{};]{1,12}( [a-z]{1,5})?\n){1,30}`).Draw(t, "code")
		s := "Text before.\n\n```go\n" + code + "```\n\nText after."
		for _, f := range []text.Format{text.Markdown, text.SlackMrkdwn} {
			joined := ""
			for _, m := range text.Split(s, f, text.Limit{Max: rapid.IntRange(40, 120).Draw(t, "max")}) {
				require.Zero(t, strings.Count(m, "```")%2, m)
				joined += "\n" + m
			}
			joined = strings.NewReplacer("```go", "", "```", "").Replace(joined)
			require.Equal(t, strings.Fields("Text before. "+code+" Text after."), strings.Fields(joined))
		}
	})
}

func FuzzSplit(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, 40, uint8(0))
	}
	f.Fuzz(func(t *testing.T, markdown string, limit int, choice uint8) {
		l := text.Limit{Max: limit % 5000, Unit: text.Unit(choice % 3)}
		requireSplit(t, markdown, formats[int(choice/3)%len(formats)], l)
	})
}

func TestNameOfTheAgentPrecedesTheText(t *testing.T) {
	for _, c := range []struct {
		markdown string
		bold     bool
		want     string
	}{
		{"hello", false, "[front] hello"},
		{"hello", true, "**[front]** hello"},
		{"[front] hello", true, "[front] hello"},
		{"**[front]** hello", false, "**[front]** hello"},
		{"[frontend] x", false, "[front] [frontend] x"},
		{"```\nx\n```", false, "[front]\n\n```\nx\n```"},
		{"# x", false, "[front]\n\n# x"},
		{"- x", true, "**[front]**\n\n- x"},
		{" \n", true, " \n"},
	} {
		got := text.Prefix(c.markdown, "front", c.bold)
		require.Equal(t, c.want, got)
		require.Equal(t, got, text.Prefix(got, "front", c.bold))
	}
	require.Equal(t, "x", text.Prefix("x", "", true))
}
