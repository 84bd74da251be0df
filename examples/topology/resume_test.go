package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/embedded"
)

func TestKilledRunContinuesItsSession(t *testing.T) {
	for _, when := range []string{
		"orchestrator-message-input", "orchestrator-tool-use-result", "worker-message-output", "summary",
	} {
		t.Run(when, func(t *testing.T) {
			dir := t.TempDir()
			killAt(t, dir, when)

			out, errs := new(buffer), new(buffer)
			require.Zero(t, command(deadline(t), []string{"-once", "-data", dir}, nil, out, errs), errs)
			require.Contains(t, out.String(), "asked    "+firstQuestion+" (before this run)")
			require.Len(t, firstAnswer.FindAllString(out.String(), -1), 1, out)
			require.NotContains(t, out.String(), "asked    "+firstQuestion+"\n", "the question is not asked twice")

			out = new(buffer)
			in := strings.NewReader("Double that.\n")
			require.Zero(t, command(deadline(t), []string{"-plain", "-data", dir}, in, out, errs), errs)
			require.Contains(t, out.String(), "answer   2 * 70 is 140.", "the history is there")
		})
	}
}

// killAt runs the program in a process of its own and kills it when a line of its output has the word.
func killAt(t *testing.T, dir, word string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(deadline(t), self, "-plain", "-data", dir)
	child.Env = append(os.Environ(), childArgs+"=1")
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe() // never closed by us: the child waits for questions
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), word) {
	}
	require.Contains(t, lines.Text(), word)
	require.NoError(t, child.Process.Kill())
	_, _ = io.Copy(io.Discard, stdout)
	require.Error(t, child.Wait())
}

func TestSessionCanBeInspected(t *testing.T) {
	dir := t.TempDir()
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(deadline(t), []string{"-once", "-data", dir}, nil, out, errs), errs)

	out = new(buffer)
	require.Zero(t, command(deadline(t), []string{"-data", dir, "-inspect", "demo"}, nil, out, errs), errs)
	require.Contains(t, out.String(), "session demo")
	require.Contains(t, out.String(), "history")

	require.Equal(t, 1, command(deadline(t), []string{"-data", dir, "-inspect", "nobody"}, nil, out, errs))
	require.Contains(t, errs.String(), "nobody")

	none := filepath.Join(dir, "none")
	require.Equal(t, 1, command(deadline(t), []string{"-data", none, "-inspect", "demo"}, nil, out, errs))
	require.NoDirExists(t, none, "looking made it")
}

func TestOtherBrokersAreUsed(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 3})
	require.NoError(t, err)
	defer broker.Close()
	brokers := strings.Join(broker.Addrs(), ",")

	out, errs := new(buffer), new(buffer)
	in := strings.NewReader("Double that.\n")
	require.Zero(t, command(deadline(t), []string{"-plain", "-brokers", brokers, "-session", "other"}, in, out, errs), errs)
	require.Regexp(t, firstAnswer, out)
	require.Contains(t, out.String(), "answer   2 * 70 is 140.")

	out = new(buffer)
	require.Zero(t, command(deadline(t), []string{"-brokers", brokers, "-inspect", "other"}, nil, out, errs), errs)
	require.Contains(t, out.String(), "turn: none")
}
