package examples

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/program"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
)

// The module, and the directory of the programs.
var (
	module = filepath.Join("..", "..", "..")
	bin    string
)

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "examples"); err == nil {
		err = program.Build(module, bin, "approval", "channels", "invoke", "operate", "peers", "slack", "tutorial/...", "workers")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(cleaned{m}, leaktest.Libraries()...)
}

// cleaned removes the programs after the tests.
type cleaned struct{ m *testing.M }

func (c cleaned) Run() int {
	defer func() { _ = os.RemoveAll(bin) }()
	return c.m.Run()
}

// run runs a program and returns its exit code. When ctx ends, it is interrupted, as by Ctrl-C.
func run(ctx context.Context, program string, args []string, in io.Reader, out, errs io.Writer) int {
	c := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	c.Stdin, c.Stdout, c.Stderr = in, out, errs
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute // it is killed
	if err := c.Run(); c.ProcessState == nil {
		_, _ = fmt.Fprintln(errs, err)
	}
	return c.ProcessState.ExitCode()
}

type buffer = program.Output

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// freePort returns a port on which no program listens.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	return port
}

func TestCommandLinesAreChecked(t *testing.T) {
	for program, wrong := range map[string][][]string{
		"approval": {{"-no-such"}, {"question"}},
		"channels": {{"extra"}, {"-adapters", "a.yaml"}, {"-settings", "s.yaml"}, {"-unknown"}},
		"invoke":   {{"serve", "x"}, {"-nonsense"}, {"fold", "file"}},
		"operate":  {{}, {"nonsense"}, {"sessions"}, {"sessions", "--agent", "no agent"}, {"sessions", "--agent", "quay", "--timeout", "0s"}},
		"peers":    {{"-no-such"}, {"question"}},
	} {
		for _, args := range wrong {
			out, errs := new(buffer), new(buffer)
			require.Equal(t, 2, run(t.Context(), program, args, nil, out, errs), "%s %s", program, args)
			require.NotEmpty(t, errs.String())
		}
		require.Zero(t, run(t.Context(), program, []string{"-h"}, nil, io.Discard, io.Discard), program)
	}
	errs := new(buffer)
	require.Zero(t, run(t.Context(), "invoke", []string{"-h"}, nil, io.Discard, errs))
	require.Contains(t, errs.String(), "usage: invoke")
	require.Zero(t, run(t.Context(), "invoke", []string{"fold"}, nil, io.Discard, io.Discard))
	require.Equal(t, 1, run(t.Context(), "invoke", []string{"serve", "-turns", filepath.Join(t.TempDir(), "none")}, nil, io.Discard, io.Discard))
	require.Equal(t, 1, run(t.Context(), "peers", []string{"instance", "-no-such"}, nil, io.Discard, io.Discard))
}
