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

// childVariable is the environment variable that makes a process a child. A child ends when its standard input ends, so
// that it does not outlive a parent that was killed.
const childVariable = "TURNTABLE_PEERS_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// untilEOF returns a context that ends at the end of in.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// killAfter is how long a child may take to stop before it is killed.
const killAfter = 20 * time.Second

// child is a process that runs an instance.
type child struct {
	name    string
	brokers []string      // set when ready is closed
	ready   chan struct{} // closed when the instance is ready
	ended   chan struct{} // closed when the process has ended
	err     error         // set when ended is closed
	stop    func()
}

// spawn starts an instance in a child process, with env added to the environment of this process. The child stops when ctx
// ends or stop is called. Its standard error is written to errs, each line with its name.
func spawn(ctx context.Context, name string, env []string, errs io.Writer, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, append([]string{instanceRole}, args...)...)
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
	c := &child{name: name, ready: make(chan struct{}), ended: make(chan struct{}), stop: cancel}
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

// readyPrefix begins the line that an instance prints when it is ready. The addresses of its broker follow.
const readyPrefix = "ready "

// listen reads the lines that the instance prints until it ends.
func (c *child) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addresses, ok := strings.CutPrefix(lines.Text(), readyPrefix); ok && c.brokers == nil {
			c.brokers = strings.Split(addresses, ",")
			close(c.ready)
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

// processes are the running children.
type processes struct {
	children []*child
	errs     io.Writer
	verbose  bool
	failed   context.CancelCauseFunc
}

// start starts an instance. If it ends without being stopped, it fails the run.
func (p *processes) start(name string, env ...string) (*child, error) {
	var args []string
	if p.verbose {
		args = []string{"-v"}
	}
	// Children do not share the context of the run, because stop waits for them.
	c, err := spawn(context.Background(), name, env, p.errs, args...)
	if err != nil {
		return nil, err
	}
	p.children = append(p.children, c)
	go func() {
		<-c.ended
		if c.err != nil {
			p.failed(c.err)
		}
	}()
	return c, nil
}

// stop stops all children and waits for their ends.
func (p *processes) stop() {
	for _, c := range p.children {
		c.stop()
	}
	for _, c := range p.children {
		<-c.ended
	}
}
