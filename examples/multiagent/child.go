package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// killAfter is how long a child may take to stop before it is killed.
const killAfter = 10 * time.Second

// child is a process that runs a role.
type child struct {
	name    string
	address chan string   // capacity 1
	ready   chan struct{} // closed when the role is ready
	ended   chan struct{} // closed when the process has ended
	err     error         // set when ended is closed
	stop    func()
}

// spawn starts a role in a child process, with env added to the environment of this process. The child stops when ctx ends
// or stop is called. Its standard error is written to errs, each line with its name.
func spawn(ctx context.Context, name, role string, env []string, errs io.Writer, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, append([]string{role}, args...)...)
	cmd.Env = append(append(os.Environ(), env...), childVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = in.Close, killAfter
	out, outWriter := io.Pipe()
	log, logWriter := io.Pipe()
	cmd.Stdout, cmd.Stderr = outWriter, logWriter
	c := &child{
		name: name, address: make(chan string, 1), ready: make(chan struct{}), ended: make(chan struct{}), stop: cancel,
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { c.listen(out) })
	reading.Go(func() { relay(name, log, errs) })
	go func() {
		defer close(c.ended)
		err := cmd.Wait()
		_, _ = outWriter.Close(), logWriter.Close() // Close of a pipe never fails
		reading.Wait()
		stopped := ctx.Err() != nil
		cancel()
		if !stopped {
			c.err = fmt.Errorf("%s ended unexpectedly: %w", name, err)
			if err == nil {
				c.err = fmt.Errorf("%s ended unexpectedly", name)
			}
		}
	}()
	return c, nil
}

// listen reads the lines that the role prints until it ends.
func (c *child) listen(out io.Reader) {
	ready := sync.OnceFunc(func() { close(c.ready) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), addressPrefix); ok {
			select {
			case c.address <- address:
			default: // only the first address counts
			}
		}
		if lines.Text() == readyLine {
			ready()
		}
	}
	_, _ = io.Copy(io.Discard, out) // discard the rest after a line that is too long, so that the child does not block
}

// relay copies the lines of a child's log to errs, each with its name.
func relay(name string, log io.Reader, errs io.Writer) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		fmt.Fprintf(errs, "%s: %s\n", name, lines.Text())
	}
	_, _ = io.Copy(io.Discard, log)
}

// awaitAddress returns the address on which the role listens, as soon as it is known.
func (c *child) awaitAddress(ctx context.Context) (string, error) {
	select {
	case address := <-c.address:
		return address, nil
	case <-c.ended:
		return "", c.endError()
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *child) awaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return c.endError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endError says why the child ended. ended must be closed.
func (c *child) endError() error {
	if c.err != nil {
		return c.err
	}
	return fmt.Errorf("%s was stopped", c.name)
}

// processes are the running children, in the order in which they were started.
type processes struct {
	children []*child
	errs     io.Writer
	verbose  bool
	failed   context.CancelCauseFunc
}

// start starts a child. If it ends without being stopped, it fails the run.
func (t *processes) start(name, role string, env ...string) (*child, error) {
	args := []string{"-q"} // no warnings about doors without authentication
	if t.verbose {
		args = []string{"-v"}
	}
	// Children do not share a context, because stop must stop them in order.
	c, err := spawn(context.Background(), name, role, env, t.errs, args...)
	if err != nil {
		return nil, err
	}
	t.children = append(t.children, c)
	go func() {
		<-c.ended
		if c.err != nil {
			t.failed(c.err)
		}
	}()
	return c, nil
}

// stop stops all children. The broker, which was started first, is stopped last.
func (t *processes) stop() {
	for i := len(t.children) - 1; i > 0; i-- {
		t.children[i].stop()
	}
	for i := len(t.children) - 1; i >= 0; i-- {
		t.children[i].stop()
		<-t.children[i].ended
	}
}
