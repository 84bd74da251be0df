package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// list writes the events of a run and returns what is reported on them, and the directory.
func list(t *testing.T, events ...string) (report, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "race.json"), []byte(strings.Join(events, "\n")+"\n"), 0o600))
	var out bytes.Buffer
	require.NoError(t, tests(dir, &out))
	return out.String(), dir
}

func of(action, test string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":"example.com/a","Test":%q}`, action, test)
}

func says(test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":"example.com/a","Test":%q,"Output":%q}`, test, text+"\n")
}

func TestTestThatFailsAndThenPassesIsUnstable(t *testing.T) {
	report, dir := list(t,
		says("TestA", "=== RUN   TestA"), says("TestA", "level=INFO begin"), says("TestA", "    a_test.go:7: "),
		says("TestA", "    \tError Trace:\ta_test.go:7"), says("TestA", "    \tError:      \tShould be true"),
		says("TestA", "    \tTest:       \tTestA"), says("TestA", "--- FAIL: TestA (0.00s)"), of("fail", "TestA"),
		of("pass", "TestB"), of("fail", ""),
		says("TestA", "second"), of("pass", "TestA"), of("pass", ""),
	)
	log := filepath.Join(dir, "failures", "race-example.com_a-TestA.log")
	require.Equal(t, "UNSTABLE: TestA, example.com/a, make race, failed attempts: 1\n"+
		"    Error:      \tShould be true\n    Test:       \tTestA\n    log: "+log+"\n", report)
	kept, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(kept), "level=INFO begin")
	require.NotContains(t, string(kept), "second", "only failed attempts are kept")
}

func TestTestThatFailsInEachAttemptIsFailed(t *testing.T) {
	report, _ := list(t,
		says("TestA/x", "    a_test.go:7: one"), of("fail", "TestA/x"), of("fail", "TestA"), of("fail", ""),
		says("TestA/x", "    a_test.go:7: two"), of("fail", "TestA/x"), of("fail", "TestA"), of("fail", ""),
	)
	require.Contains(t, report, "FAILED: TestA/x, example.com/a, make race, failed attempts: 2\n    a_test.go:7: one\n")
	require.Equal(t, 1, strings.Count(report, "FAILED"), "its parent and its package are not listed")
}

func TestPackageThatFailsWithoutATestIsListed(t *testing.T) {
	report, _ := list(t, of("pass", "TestA"), says("", "goleak: Errors on successful test run: found unexpected goroutines:"), of("fail", ""))
	require.Contains(t, report, "FAILED: the package, example.com/a, make race, failed attempts: 1\n    goleak: Errors")
}

func TestPackageThatFailsInTheRepetitionOfATestIsListed(t *testing.T) {
	report, _ := list(t,
		says("TestA", "a_test.go:7: one"), of("fail", "TestA"), of("fail", ""),
		of("pass", "TestA"), says("", "panic: two"), of("fail", ""),
	)
	require.Contains(t, report, "UNSTABLE: TestA,")
	require.Contains(t, report, "FAILED: the package, example.com/a, make race, failed attempts: 2\n")
}

func TestPackageThatDoesNotCompileIsListedWithTheErrorOfTheCompiler(t *testing.T) {
	report, _ := list(t,
		`{"ImportPath":"example.com/a [a.test]","Action":"build-output","Output":"a.go:3:1: undefined: x\n"}`,
		`{"ImportPath":"example.com/a [a.test]","Action":"build-fail"}`,
		`{"Action":"fail","Package":"example.com/a","FailedBuild":"example.com/a [a.test]"}`,
	)
	require.Contains(t, report, "    a.go:3:1: undefined: x\n")
}

func TestRunWithoutFailuresHasAnEmptyReport(t *testing.T) {
	report, _ := list(t, of("pass", "TestA"), of("skip", "TestB"), of("pass", ""), "not an event")
	require.Empty(t, report)
}

func TestDirectoryWithoutARunIsRejected(t *testing.T) {
	require.Error(t, tests(t.TempDir(), &bytes.Buffer{}))
}
