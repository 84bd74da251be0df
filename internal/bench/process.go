package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// process is a process that this program started, or one that it only measures.
type process struct {
	name  string
	pid   int
	words []string // it was ready with

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan string
	exited  chan struct{}
	err     error // of the exit
}

const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
)

// startChild starts this program as a child and waits until it is ready.
func startChild(ctx context.Context, name string, c childSpec, wait time.Duration) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	orders, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx // the child stops when its standard input is closed
	cmd.Env = append(os.Environ(), childVariable+"="+string(orders))
	p, err := start(name, cmd)
	if err != nil {
		return nil, err
	}
	answer, err := p.answer(ctx, wait)
	words := strings.Fields(answer)
	if err == nil && (len(words) == 0 || words[0] != "ready") {
		err = fmt.Errorf("bench: %s answers %q", name, answer)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.words = words[1:]
	return p, nil
}

// startCommand starts another program. It does not report when it is ready.
func startCommand(name, line string, environ ...string) (*process, error) {
	cmd := exec.Command("sh", "-c", "exec "+line) //nolint:noctx // stop ends it with SIGTERM
	cmd.Env = append(os.Environ(), environ...)
	return start(name, cmd)
}

func start(name string, cmd *exec.Cmd) (*process, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	setProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", name, err)
	}
	p := &process{
		name: name, pid: cmd.Process.Pid, cmd: cmd, stdin: in, answers: make(chan string, 16), exited: make(chan struct{}),
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.answers <- lines.Text():
			default: // the output of another program is ignored
			}
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) answer(ctx context.Context, wait time.Duration) (string, error) {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	select {
	case line := <-p.answers:
		return line, nil
	case <-p.exited:
		return "", fmt.Errorf("bench: %s has ended: %w", p.name, p.exit())
	case <-ctx.Done():
		return "", fmt.Errorf("bench: %s does not answer: %w", p.name, context.Cause(ctx))
	}
}

var errEnded = errors.New("without an error")

func (p *process) exit() error {
	if p.err == nil {
		return errEnded
	}
	return p.err
}

// order sends a command to a child and waits for its answer.
func (p *process) command(ctx context.Context, line string) error {
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		return fmt.Errorf("bench: %s: %w", p.name, err)
	}
	answer, err := p.answer(ctx, readyTimeout)
	if err == nil && answer != "done" {
		err = fmt.Errorf("bench: %s: %s", p.name, answer)
	}
	return err
}

// running returns an error if a started process has ended.
func (p *process) running() error {
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.exited:
		return fmt.Errorf("bench: %s has ended: %w", p.name, p.exit())
	default:
		return nil
	}
}

// end stops a started process, and kills it if it does not stop in time. A process that is only measured keeps running.
func (p *process) stop() error { return p.stopWithin(stopTimeout) }

func (p *process) stopWithin(wait time.Duration) error {
	if p == nil || p.cmd == nil {
		return nil
	}
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("bench: %s did not end within %v", p.name, wait)
	}
	return nil
}
