package worker_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/internal/truncate"
)

func TestTextIsValidUTF8AndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, max := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), rapid.IntRange(0, 20).Draw(t, "max")
		got := truncate.Text(raw, max)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), max)
		valid := strings.ToValidUTF8(raw, "?") // bytes in a row that are no text become one "?"
		require.Greater(t, len(got), min(len(valid), max)-utf8.UTFMax)
	})
}

func TestTruncatedTextIsMarked(t *testing.T) {
	require.Equal(t, "abc", truncate.Marked("abc", 3))
	require.Equal(t, "ab…", truncate.Marked("abü", 3))
	require.Equal(t, "a?", truncate.Text("a\xff", 3))
}
