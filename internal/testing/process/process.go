// Package process runs a test binary again as the child process of a test, which the test may kill and pause.
package process

import (
	"os"
	"os/exec"
	"testing"
)

// Process is a child process.
type Process struct {
	*exec.Cmd
	// Ended is closed when the process has ended and Err, the result of Wait, is known.
	Ended chan struct{}
	Err   error
}

// Spawn starts the test binary of the calling process with more environment variables, by which its TestMain knows what to do.
// Its output goes to standard error. The test kills the process at its end, and fails if it cannot be started.
func Spawn(tb testing.TB, env ...string) *Process {
	tb.Helper()
	p := &Process{Cmd: exec.Command(os.Args[0]), Ended: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = os.Stderr, os.Stderr
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { defer close(p.Ended); p.Err = p.Wait() }()
	tb.Cleanup(func() { _ = p.Process.Kill(); <-p.Ended })
	return p
}

// Main ends the process with the result of a child's main function.
func Main(child func() error) {
	if err := child(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}
