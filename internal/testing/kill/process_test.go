package kill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func there(t *testing.T, dir, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}, time.Minute, 5*time.Millisecond, name)
}

func TestStoppedProgramEndsInAnOrderlyWay(t *testing.T) {
	c := config{Dir: t.TempDir(), After: 3 * time.Second}
	p := Start(t, "waits", c)
	require.NoError(t, p.Await(t.Context()))
	require.False(t, p.Gone())
	require.NoError(t, p.Tell("told"))
	there(t, c.Dir, "told")
	require.NoError(t, p.Stop())
	there(t, c.Dir, "ended")
	require.False(t, p.Killed())
	require.Contains(t, p.Logged(), "it begins")
	require.Contains(t, p.Logged(), `{"after": "3s"}`)
}

func TestKilledProcessEndsAtOnce(t *testing.T) {
	c := config{Dir: t.TempDir()}
	p := Start(t, "waits", c)
	require.NoError(t, p.Await(t.Context()))
	require.NoError(t, p.Pause())
	require.NoError(t, p.Resume())
	require.NoError(t, p.Tell("told"))
	there(t, c.Dir, "told")
	require.NoError(t, p.Kill())
	require.True(t, p.Killed())
	require.Error(t, p.Wait(t.Context()))
	require.NoFileExists(t, filepath.Join(c.Dir, "ended"))
	require.ErrorContains(t, p.Kill(), "has ended")
}

func TestProgramThatFailsIsAnErrorThatSaysWhy(t *testing.T) {
	p := Start(t, "fails", config{})
	require.ErrorContains(t, p.Await(t.Context()), "no such ship")
	require.Error(t, p.Wait(t.Context()))
	require.ErrorContains(t, p.Kill(), "no such ship")
	require.ErrorContains(t, p.Stop(), "no such ship")
}

func TestProgramEndsWithTheProcessThatStartedIt(t *testing.T) {
	c := config{Dir: t.TempDir()}
	p := Start(t, "parent", c)
	there(t, c.Dir, "began")
	require.NoError(t, p.Kill())
	there(t, c.Dir, "ended")
}

func TestGoroutinesOfAProcessThatHangs(t *testing.T) {
	p := Start(t, "waits", config{Dir: t.TempDir()})
	require.NoError(t, p.Await(t.Context()))
	require.NoError(t, p.Pause())
	require.Contains(t, p.goroutines(), "kill.waits")
	require.Contains(t, p.Logged(), "it begins")
	require.NotContains(t, p.Logged(), "goroutine")
}

func TestOutputKeepsItsEnd(t *testing.T) {
	var o output
	for n := range 5 * logLimit / 10 {
		_, err := fmt.Fprintf(&o, "line %4d\n", n%10000)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(o.kept), 2*logLimit+10)
	require.Less(t, len(o.String()), logLimit+100)
	require.Equal(t, fmt.Sprintf("line %4d", (5*logLimit/10-1)%10000), o.last())
}

func TestGoroutinesThatDoTheSameArePrintedOnce(t *testing.T) {
	const of = "goroutine %d [select, 2 minutes]:\nmain.%s(0xc0001, 0x1)\n\t/file.go:3 +0x1\nmain.main()\n\t/file.go:9 +0x1\n\n"
	dump := "SIGQUIT: quit\n\n" + fmt.Sprintf(of, 1, "many") + fmt.Sprintf(of, 2, "one") + fmt.Sprintf(of, 3, "many") + "rax 0x1\n"
	require.Equal(t, "\n1 goroutines [select]\n  main.one\n  main.main\n2 goroutines [select]\n  main.many\n  main.main", condensed(dump))
}

func TestSizesAreThoseOfTheEnvironment(t *testing.T) {
	require.Equal(t, 3, Size(t, "TURNTABLE_TEST_SIZE", 3))
	t.Setenv("TURNTABLE_TEST_SIZE", "12")
	require.Equal(t, 12, Size(t, "TURNTABLE_TEST_SIZE", 3))
}

func TestLongRunsHaveEachGuarantee(t *testing.T) {
	for long, want := range map[string]string{"": "a", "1": "a b"} {
		t.Setenv("TURNTABLE_LONG", long)
		var ran []string
		Guarantees(t, func(_ *testing.T, g string) { ran = append(ran, g) }, "a", "b")
		require.Equal(t, want, strings.Join(ran, " "))
	}
}

var errClient = errors.New("the wrong answer")
