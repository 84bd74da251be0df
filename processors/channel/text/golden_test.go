package text_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRenderedTextsEqualTheGoldenFiles(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, source := range sources {
		markdown, err := os.ReadFile(source)
		require.NoError(t, err)
		for format, extension := range map[text.Format]string{
			text.TelegramHTML: ".telegram", text.SlackMrkdwn: ".slack", text.Plain: ".plain",
		} {
			golden := strings.TrimSuffix(source, ".md") + extension
			got := text.Render(string(markdown), format) + "\n"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got, golden)
		}
		require.Equal(t, string(markdown), text.Render(string(markdown), text.Markdown))
	}
}
