package text_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

// The parser's time for these grows with the square of their length: they are shown as they are.
func TestTextThatIsSlowToParseIsShownAsItIs(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("> ", 100), strings.Repeat(">", 50_000), strings.Repeat("- ", 100), strings.Repeat("1. ", 100), strings.Repeat("![a](", 50_000),
		strings.Repeat("[a]: https://x\n", 10_000),
	} {
		s += "**a** & b"
		require.Equal(t, shown(s), shown(text.Render(s, text.Plain)))
		requireTelegram(t, s, text.Limit{Max: 500})
		requireSplit(t, s, text.Markdown, text.Limit{Max: 500})
		require.True(t, strings.HasPrefix(text.Prefix(s, "front", false), "[front]\n\n"))
	}
}

// Markdown shows no definitions of links. An answer of nothing else would be lost.
func TestDefinitionsOfLinksAreShownIfThereIsNothingElse(t *testing.T) {
	const definitions = "[1]: https://x.y/a\n[2]: https://x.y/b"
	require.Equal(t, definitions, text.Render(definitions, text.Plain))
	require.Equal(t, []string{"[1]: https://x.y/a", "[2]: https://x.y/b"}, text.Split(definitions, text.TelegramHTML, text.Limit{Max: 20}))
	require.Equal(t, "see a (https://x.y/a)", text.Render("see [a][1]\n\n"+definitions, text.Plain))
}

func TestNestedMarkupEnds(t *testing.T) {
	images := strings.Repeat("![", 60) + "x" + strings.Repeat("](https://y)", 60)
	require.Equal(t, `<a href="https://y">x</a>`, text.Render(images, text.TelegramHTML))
	emphasis := strings.Repeat("*a **", 500) + "x" + strings.Repeat("** a*", 500)
	requireTelegram(t, emphasis, text.Limit{Max: 400})
	for _, f := range formats {
		requireSplit(t, emphasis, f, text.Limit{Max: 400})
		requireSplit(t, strings.Repeat("字", 20_000), f, text.Limit{Max: 40})
		requireSplit(t, strings.Repeat("> ", 60)+strings.Repeat("word ", 300), f, text.Limit{Max: 100})
		requireSplit(t, strings.Repeat("- ", 60)+strings.Repeat("word ", 300), f, text.Limit{Max: 100})
	}
}
