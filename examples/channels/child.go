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
)

// childVariable is the environment variable that makes a process a child. A child ends when its standard input ends, so that
// it does not outlive a parent that was killed.
const childVariable = "TURNTABLE_CHANNELS_CHILD"

// readyPrefix begins the line that the app prints when it is ready. Its address follows.
const readyPrefix = "ready http://"

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

// child is a process that runs the app.
type child struct {
	cmd   *exec.Cmd
	in    io.Closer
	ready chan string // the address
	ended chan struct{}
	err   error // set when ended is closed
}

// spawn starts the app in a process of its own.
func spawn(args, env []string, errs io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, args...), ready: make(chan string, 1), ended: make(chan struct{})}
	c.cmd.Env = append(append(os.Environ(), env...), childVariable+"=1")
	c.cmd.Stderr = errs
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, writer := io.Pipe()
	c.cmd.Stdout = writer
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if address, ok := strings.CutPrefix(lines.Text(), readyPrefix); ok {
				c.ready <- "http://" + address
				break
			}
		}
		_, _ = io.Copy(io.Discard, out) // so that the child does not block
	})
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
		_ = writer.Close()
		reading.Wait()
	}()
	return c, nil
}

// address waits until the app is ready.
func (c *child) address(ctx context.Context) (string, error) {
	select {
	case address := <-c.ready:
		return address, nil
	case <-c.ended:
		return "", fmt.Errorf("the app has ended: %w", c.err)
	case <-ctx.Done():
		return "", fmt.Errorf("the app is not ready: %w", context.Cause(ctx))
	}
}

// kill ends the process as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// stop lets the process end by itself.
func (c *child) stop() {
	_ = c.in.Close()
	<-c.ended
}
