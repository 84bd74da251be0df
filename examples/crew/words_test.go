package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLineIsDividedAsAShellDoes(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                  nil,
		"  npx  -y pkg ":                    {"npx", "-y", "pkg"},
		`"/opt/my agent/run" --model "a b"`: {"/opt/my agent/run", "--model", "a b"},
		`sh -c 'echo "a\\b"' x\ y ""`:       {"sh", "-c", `echo "a\\b"`, "x y", ""},
		`a"b c"d`:                           {"ab cd"},
	} {
		got, err := words(line)
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{`"a`, `'a`, `a\`} {
		_, err := words(line)
		require.ErrorIs(t, err, errQuote)
	}
}
