package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const output = `goos: linux
pkg: example.com/a
BenchmarkOne/size=0-2         	     200	      4163 ns/op	    1000 records/s	     856 B/op	      20 allocs/op
BenchmarkTwo                  	     200	      4163 ns/op	     856 B/op	       4 allocs/op
BenchmarkTimed-2              	     200	      4163 ns/op
PASS
pkg: example.com/b
BenchmarkOne-16               	     200	      4163 ns/op	     856 B/op	     100 allocs/op
`

func guard(t *testing.T, baseline string, write bool) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "baseline")
	require.NoError(t, os.WriteFile(file, []byte(baseline), 0o600))
	var out bytes.Buffer
	err := allocs(file, write, strings.NewReader(output), &out)
	require.Equal(t, output, out.String(), "it passes through")
	after, readErr := os.ReadFile(file)
	require.NoError(t, readErr)
	return string(after), err
}

func TestTenPercentMoreAllocationsPass(t *testing.T) {
	_, err := guard(t, "example.com/a BenchmarkOne/size=0 18.5\nexample.com/b BenchmarkOne 200\n", false)
	require.NoError(t, err)
	_, err = guard(t, "example.com/a BenchmarkOne/size=0 17\nexample.com/b BenchmarkOne 91\n", false)
	require.ErrorIs(t, err, errWorse)
	require.ErrorContains(t, err, "example.com/a BenchmarkOne/size=0: 20, baseline 17")
	require.NotContains(t, err.Error(), "example.com/b")
}

func TestMissingBenchmarkFails(t *testing.T) {
	_, err := guard(t, "example.com/a BenchmarkGone 1\n", false)
	require.ErrorContains(t, err, "BenchmarkGone was not run")
}

func TestBaselineIsUpdated(t *testing.T) {
	after, err := guard(t, "example.com/a BenchmarkTwo 9\nexample.com/a BenchmarkGone 1\n", true)
	require.NoError(t, err)
	require.Contains(t, after, "example.com/a BenchmarkTwo 4\n")
	require.Contains(t, after, "example.com/a BenchmarkGone 1\n")
}

func TestEmptyOrInvalidBaselineIsRejected(t *testing.T) {
	for _, bad := range []string{"", "# nothing\n", "a b\n", "a b c\n"} {
		_, err := parseBaseline(bad)
		require.Error(t, err, bad)
	}
}

func TestFailedBenchmarkRunFails(t *testing.T) {
	_, err := read(strings.NewReader("--- FAIL: BenchmarkOne\n"))
	require.Error(t, err)
}
