package kafkatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// copies is a Maven that has the jar at hand, and notes that it ran.
const copies = `
for arg; do case $arg in
-DoutputDirectory=*) lib=${arg#-DoutputDirectory=} ;;
esac; done
echo run >>"$MAVEN_RUNS"
mkdir -p "$lib" && touch "$lib/kafka_2.13-$KAFKA_JAR.jar"`

func TestVersionIsReadFromThePom(t *testing.T) {
	require.Regexp(t, `^\d+\.\d+\.\d+$`, Version())
	require.Equal(t, 1, strings.Count(string(pom), Version()), "the version stands in one place")
	require.True(t, strings.HasPrefix(jarsKey(Version()), Version()+"-"))
}

func TestComposeFileHasTheSameKafkaVersion(t *testing.T) {
	compose, err := os.ReadFile("../../../compose.yaml")
	require.NoError(t, err)
	require.Contains(t, string(compose), "image: apache/kafka:"+Version()+"\n")
}

func TestConcurrentFetchesDownloadOnce(t *testing.T) {
	runs := maven(t, copies)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			jars, err := Fetch(t.Context(), "")
			if err == nil && !complete(jars, Version()) {
				err = errors.New("no jar")
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, 1, runs())
	require.Empty(t, drafts(t))
}

func TestFetchedJarsNeedNoMaven(t *testing.T) {
	maven(t, copies)
	want, err := Fetch(t.Context(), "")
	require.NoError(t, err)
	t.Setenv("PATH", "")
	got, err := Fetch(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestEachVersionHasItsOwnJars(t *testing.T) {
	runs := maven(t, copies)
	_, err := Fetch(t.Context(), "")
	require.NoError(t, err)
	t.Setenv("KAFKA_JAR", BeforeShareGroups)
	jars, err := Fetch(t.Context(), BeforeShareGroups)
	require.NoError(t, err)
	require.True(t, complete(jars, BeforeShareGroups))
	require.Equal(t, 2, runs())
}

func TestFetchWithoutMavenNamesMaven(t *testing.T) {
	bare(t)
	_, err := Fetch(t.Context(), "")
	require.ErrorIs(t, err, ErrJars)
	require.ErrorContains(t, err, "mvn")
}

func TestInterruptedFetchLeavesNoJars(t *testing.T) {
	runs := maven(t, copies+"\necho registry says no; exit 1")
	_, err := Fetch(t.Context(), "")
	require.ErrorIs(t, err, ErrJars)
	require.ErrorContains(t, err, "registry says no")
	require.Empty(t, drafts(t))

	_, err = Fetch(t.Context(), "")
	require.ErrorIs(t, err, ErrJars)
	require.Equal(t, 2, runs(), "a later fetch begins anew")
}

func TestFetchWithoutTheBrokersJarFails(t *testing.T) {
	maven(t, "exit 0")
	_, err := Fetch(t.Context(), "")
	require.ErrorIs(t, err, ErrJars)
	require.ErrorContains(t, err, "kafka_2.13-"+Version()+".jar")
}

func TestFetchEndsWithItsContext(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("MAVEN_STARTED", started)
	maven(t, `mkfifo "$MAVEN_STARTED.fifo"; touch "$MAVEN_STARTED"; exec cat "$MAVEN_STARTED.fifo"`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				return
			}
		}
	}()
	_, err := Fetch(ctx, "")
	require.ErrorIs(t, err, ErrJars)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, drafts(t))
}

// maven puts a Maven of the test's own in PATH and returns how often it ran.
func maven(t *testing.T, script string) (runs func() int) {
	t.Helper()
	program(t, bare(t), "mvn", script)
	log := filepath.Join(t.TempDir(), "runs")
	t.Setenv("MAVEN_RUNS", log)
	t.Setenv("KAFKA_JAR", Version())
	return func() int {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return strings.Count(string(text), "\n")
	}
}

func drafts(t *testing.T) []string {
	t.Helper()
	root, err := cacheDir()
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(root, "fetch-*"))
	require.NoError(t, err)
	return found
}
