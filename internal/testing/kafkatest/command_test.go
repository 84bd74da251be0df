package kafkatest

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorNamesTheInvalidArgument(t *testing.T) {
	for line, want := range map[string]string{
		"":                "no command",
		"begin":           `unknown command "begin"`,
		"start now":       `unexpected "now"`,
		"start -port few": "port",
		"stop -port 9092": "port",
	} {
		err := Command(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		require.ErrorContains(t, err, want, line)
	}
}

func TestHelpPrintsUsageWithoutAnError(t *testing.T) {
	var note strings.Builder
	require.ErrorIs(t, Command(t.Context(), []string{"start", "-h"}, io.Discard, &note), flag.ErrHelp)
	require.Contains(t, note.String(), "usage: kafka start")
}

func TestStartWithoutJavaFails(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("JAVA_HOME", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var out strings.Builder
	require.ErrorContains(t, Command(t.Context(), []string{"start"}, &out, io.Discard), "Java 17")
	require.NoError(t, Command(t.Context(), []string{"stop"}, &out, io.Discard), "there is nothing to stop")
	require.Empty(t, out.String())
}
