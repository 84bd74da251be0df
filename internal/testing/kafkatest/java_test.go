package kafkatest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJavaVersionIsRead(t *testing.T) {
	for out, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime":              17,
		"java version \"1.8.0_452\"":                                           8,
		"openjdk version \"25\" 2025-09-16":                                    25,
		"openjdk version \"26-ea\"":                                            26,
		"Picked up JAVA_TOOL_OPTIONS: -Dversion=3\nopenjdk version \"21.0.7\"": 21,
	} {
		got, ok := javaMajor(out)
		require.True(t, ok, out)
		require.Equal(t, want, got, out)
	}
	_, ok := javaMajor("The operation couldn't be completed. Unable to locate a Java Runtime.")
	require.False(t, ok)
}

func TestStartWithoutJavaNamesJava(t *testing.T) {
	bare(t)
	_, err := Start(t.Context(), Options{})
	require.ErrorIs(t, err, ErrJava)
	require.ErrorContains(t, err, "PATH")
}

func TestStartWithOldJavaNamesItsVersion(t *testing.T) {
	bin := bare(t)
	program(t, bin, "java", `echo 'openjdk version "11.0.2" 2019-01-15' >&2`)
	_, err := Start(t.Context(), Options{})
	require.ErrorIs(t, err, ErrJava)
	require.ErrorContains(t, err, filepath.Join(bin, "java")+" is Java 11")
}

func TestJavaHomeTakesPrecedenceOverPath(t *testing.T) {
	program(t, bare(t), "java", `echo 'openjdk version "17"'`)
	home := t.TempDir()
	t.Setenv("JAVA_HOME", home)
	_, err := findJava(t.Context())
	require.ErrorIs(t, err, ErrJava)
	require.ErrorContains(t, err, home)

	require.NoError(t, os.Mkdir(filepath.Join(home, "bin"), 0o755))
	program(t, filepath.Join(home, "bin"), "java", `echo 'openjdk version "21"'`)
	java, err := findJava(t.Context())
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, "bin", "java"), java)
}

func TestErrorQuotesTheOutputOfAFailingJava(t *testing.T) {
	program(t, bare(t), "java", "echo no Java Runtime here; exit 1")
	_, err := findJava(t.Context())
	require.ErrorIs(t, err, ErrJava)
	require.ErrorContains(t, err, "no Java Runtime here")
}

func TestOtherClusterSizesAreRejected(t *testing.T) {
	for _, nodes := range []int{-1, 2, 4} {
		_, err := Start(t.Context(), Options{Nodes: nodes})
		require.ErrorContains(t, err, "1 or 3 nodes")
	}
}

// bare takes everything from the environment that a start could find, and returns the only directory in PATH.
func bare(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	return bin
}

func program(t *testing.T, dir, name, script string) {
	t.Helper()
	text := "#!/bin/sh\nPATH=/usr/bin:/bin\n" + script + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
}
