package clip_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/clip"
)

func TestTextIsValidAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, max := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), rapid.IntRange(0, 20).Draw(t, "max")
		got := clip.Text(raw, max)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), max)
		require.Greater(t, len(got), min(len(raw), max)-utf8.UTFMax)
	})
}

func TestWhatIsCutIsMarked(t *testing.T) {
	require.Equal(t, "abc", clip.Marked("abc", 3))
	require.Equal(t, "ab…", clip.Marked("abü", 3))
	require.Equal(t, "a?", clip.Text("a\xff", 3))
}
