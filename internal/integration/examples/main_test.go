package examples

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
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
		err = build("approval", "channels", "invoke", "minimal", "operate", "peers", "slack", "tutorial/...", "workers")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(cleaned{m}, leaktest.Libraries()...)
}

func build(programs ...string) error {
	args := []string{"build", "-o", bin + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./examples/"+p)
	}
	c := exec.Command("go", args...)
	c.Dir = module
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
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
