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

// killAfter is how long a child may take to end before it is killed.
const killAfter = 10 * time.Second

// child is a process of ours that runs a role.
type child struct {
	name    string
	address chan string   // of one element
	ready   chan struct{} // closed when it says so
	ended   chan struct{} // closed when the process is gone
	err     error         // set when ended is closed
	stop    func()
}

// spawn starts a role, with variables besides those of this process. It stops with ctx, or with stop; its standard
// error goes to errs, line by line under its name.
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
		_, _ = outWriter.Close(), logWriter.Close() // they never fail
		reading.Wait()
		stopped := ctx.Err() != nil
		cancel()
		if !stopped {
			c.err = fmt.Errorf("%s ended by itself: %w", name, err)
			if err == nil {
				c.err = fmt.Errorf("%s ended by itself", name)
			}
		}
	}()
	return c, nil
}

// listen hears what the role says until it has ended.
func (c *child) listen(out io.Reader) {
	said := sync.OnceFunc(func() { close(c.ready) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), sayAddress); ok {
			select {
			case c.address <- address:
			default: // it listens in one place
			}
		}
		if lines.Text() == sayReady {
			said()
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line that is too long must not hold it up
}

func relay(name string, log io.Reader, errs io.Writer) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		fmt.Fprintf(errs, "%s: %s\n", name, lines.Text())
	}
	_, _ = io.Copy(io.Discard, log)
}

// awaitAddress is where the role listens.
func (c *child) awaitAddress(ctx context.Context) (string, error) {
	select {
	case address := <-c.address:
		return address, nil
	case <-c.ended:
		return "", c.gone()
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *child) awaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return c.gone()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *child) gone() error {
	if c.err != nil {
		return c.err
	}
	return fmt.Errorf("%s was stopped", c.name)
}

// troupe is the children that run, in the order in which they were started.
type troupe struct {
	children []*child
	errs     io.Writer
	verbose  bool
	failed   context.CancelCauseFunc
}

// start adds a child. One that ends by itself fails all of them.
func (t *troupe) start(name, role string, env ...string) (*child, error) {
	args := []string{"-q"} // an open door is no news here
	if t.verbose {
		args = []string{"-v"}
	}
	// They are stopped in order, not by the end of a context that they share.
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

// stop ends all children, the broker, which came first, after the others.
func (t *troupe) stop() {
	for i := len(t.children) - 1; i > 0; i-- {
		t.children[i].stop()
	}
	for i := len(t.children) - 1; i >= 0; i-- {
		t.children[i].stop()
		<-t.children[i].ended
	}
}
