package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

func TestMain(m *testing.M) {
	crewtest.Main()
	if isChild() {
		main() // the test binary is the program of its children
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}

// buffer is what a program writes while a test reads it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

func TestPlayShowsEveryStep(t *testing.T) {
	needGit(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(ctx, []string{"-timeout", "5m"}, strings.NewReader(""), out, errs), "%s%s", out, errs)
	require.Empty(t, errs.String())
	parts := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	require.Len(t, parts, 7, out)
	for i, want := range [][]string{
		{`tester +runs on the (TypeScript|Go) SDK`},
		{`lead +delegates to \S+: Write parse\.go`, `lead +delegates to \S+: Write parse_test\.go`},
		{`tester +does not get parse\.go: developer has it`},
		{`developer +says: The code is vetted\.`, `tester +says: I push nothing\.`, `lead +says: No one answered`},
		{`developer +has committed \[parse\.go\]: Add the parser`, `tester +has committed \[parse_test\.go\]: Test the parser`},
		{`processors +were killed`, `host +was killed`, `developer +has committed \[parse\.go\]: Comment the parser`, `tester +says: Hello`},
		{`git log +Begin`, `git log +Add the parser, by Developer`, `git log +Test the parser, by Tester`, `git log +Comment the parser`},
	} {
		for _, w := range want {
			require.Regexp(t, regexp.MustCompile(w), parts[i], out)
		}
	}
}

// An agent of the user's choice: a scripted one, which is a program like any other.
func TestAgentOfTheCommandLineIsRun(t *testing.T) {
	needGit(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	script := crewtest.Script{Rules: []crewtest.Rule{
		{Match: "Your task: Greet", Steps: []crewtest.Step{ask("greet", "echo hello", "Hello.", "No hello.", "Nothing.")}},
		{Match: "How are you", Steps: []crewtest.Step{say("@user\nI am well.")}},
	}}
	argv, err := crewtest.Command(t.TempDir(), script)
	require.NoError(t, err)
	out, errs, code := new(buffer), new(buffer), make(chan int, 1)
	in, typed := io.Pipe()
	go func() {
		code <- command(ctx, []string{"-agent", strings.Join(argv, " "), "-task", "Greet"}, in, out, errs)
	}()
	shown := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, 2*time.Minute, 20*time.Millisecond, "%s%s", out, errs)
	}
	enter := func(text string) {
		_, err := io.WriteString(typed, text+"\n")
		require.NoError(t, err)
	}
	shown("asks for permission: echo hello")
	enter("y")
	shown("Hello.")
	enter("How are you?")
	shown("I am well.")
	require.NoError(t, typed.Close())
	require.Zero(t, <-code, errs)
	require.Empty(t, errs.String())
	kept := regexp.MustCompile(`is left in (\S+)/repository`).FindStringSubmatch(out.String())
	require.NotNil(t, kept, out)
	require.NoError(t, os.RemoveAll(kept[1]))
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"-unknown"}, {"-timeout", "soon"}, {"-agent", "no-such-program"}, {"-agent", "  "}, {"-brokers", "foo"}, {"-brokers", ":9092"}, {"-brokers", " , "}} {
		errs := new(buffer)
		require.Equal(t, 2, command(t.Context(), args, strings.NewReader(""), io.Discard, errs), args)
		require.NotEmpty(t, errs.String())
	}
	require.Zero(t, command(t.Context(), []string{"-h"}, strings.NewReader(""), io.Discard, io.Discard))
}
