package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// Process is a child process of a test. Its methods may be called by any goroutine.
type Process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	running chan struct{}
	ended   chan struct{} // closed when err is known
	err     error
	said    states
	logged  output
}

// Start starts a program of this test binary, see [Main], with a configuration. The process ends with the test.
func Start(tb testing.TB, program string, config any) *Process {
	tb.Helper()
	if known[program] == nil {
		tb.Fatalf("TestMain gives kill.Main no program %q", program)
	}
	raw, err := json.Marshal(config, durations)
	if err != nil {
		tb.Fatalf("configuration of %s: %v", program, err)
	}
	text, err := json.Marshal(task{program, raw})
	if err != nil {
		tb.Fatal(err)
	}
	p := &Process{cmd: exec.Command(os.Args[0], "-test.run=^$"), running: make(chan struct{}), ended: make(chan struct{})}
	// A process under the race detector waits for a second before it exits, unless it is told not to.
	p.cmd.Env = append(os.Environ(), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0", variable+"="+string(text))
	p.said.running = sync.OnceFunc(func() { close(p.running) })
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.logged
	p.cmd.WaitDelay = time.Second // for what it started itself, which may still have its standard error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		tb.Fatalf("%s: %v", program, err)
	}
	p.name = fmt.Sprintf("%s (process %d)", program, p.cmd.Process.Pid)
	go func() { defer close(p.ended); p.err = p.cmd.Wait() }()
	tb.Cleanup(func() {
		goroutines := ""
		if tb.Failed() {
			goroutines = p.goroutines()
		}
		_ = p.signal(syscall.SIGKILL)
		<-p.ended
		_ = p.stdin.Close()
		if tb.Failed() {
			tb.Logf("%s, %v, with %s\n%s%s", p.name, p.err, raw, p.Logged(), goroutines)
		}
	})
	return p
}

// Running is closed when the process has said that it runs, see [Say].
func (p *Process) Running() <-chan struct{} { return p.running }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Await waits until the process runs. It is an error if it ends.
func (p *Process) Await(ctx context.Context) error {
	select {
	case <-p.running:
		return nil
	case <-p.ended:
		return p.gone()
	case <-ctx.Done():
		return fmt.Errorf("%s does not run: %w", p.name, context.Cause(ctx))
	}
}

// gone is the error of what needs a process that has ended.
func (p *Process) gone() error {
	return fmt.Errorf("%s has ended: %v: %s", p.name, p.err, p.logged.last())
}

// Wait waits until the process ends by itself, and returns how. It is nil if its program returned nil.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", p.name, context.Cause(ctx))
	}
}

// Kill ends the process with SIGKILL, as a crash of the machine would, for all it knows. It is an error if it has ended before.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	if !p.Killed() {
		return p.gone()
	}
	return nil
}

// KillNow sends SIGKILL and does not wait for the end.
func (p *Process) KillNow() error { return p.signal(syscall.SIGKILL) }

// Killed reports whether the process has ended with SIGKILL.
func (p *Process) Killed() bool {
	if !p.Gone() || p.cmd.ProcessState == nil {
		return false
	}
	status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Pause stops the process, as a machine that hangs, until [Process.Resume].
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume has the process continue.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Stop has the program end in an orderly way, and returns how the process ended.
func (p *Process) Stop() error {
	_ = p.stdin.Close()
	<-p.ended
	if p.err != nil {
		return p.gone()
	}
	return nil
}

// Tell passes a line to the program, see [Listen].
func (p *Process) Tell(line string) error {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// Logged is the end of what the process has logged.
func (p *Process) Logged() string { return p.logged.String() }

func (p *Process) signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		<-p.ended
		return p.gone()
	}
	return err
}

// goroutines ends a process that has not ended and returns what its goroutines did.
func (p *Process) goroutines() string {
	if p.Gone() {
		return ""
	}
	_ = p.Resume()
	if p.signal(syscall.SIGQUIT) != nil {
		return ""
	}
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	return condensed(p.logged.dump())
}

// states takes the lines of a process's standard output.
type states struct {
	line    bytes.Buffer
	running func()
}

func (s *states) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\n' {
			s.line.WriteByte(b)
			continue
		}
		if s.line.String() == Running {
			s.running()
		}
		s.line.Reset()
	}
	return len(p), nil
}
