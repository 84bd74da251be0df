package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/go-json-experiment/json"
)

// childVariable is the environment variable that makes a process a child. Its value is a childSettings. A child ends when its
// standard input ends, so that it does not outlive a parent that was killed.
const childVariable = "TURNTABLE_CREW_CHILD"

// readyLine is what a child prints when it is ready.
const readyLine = "ready"

// The parts of the program that are processes of their own.
const (
	processorsPart = "processors"
	hostPart       = "host"
)

// childSettings is what a child needs to know.
type childSettings struct {
	Part    string
	Brokers []string
	Verbose bool
	// The following are for the host: its name, the directory of the agents, and their command lines by provider.
	Host     string              `json:",omitzero"`
	Dir      string              `json:",omitzero"`
	Commands map[string][]string `json:",omitzero"`
	// Patience is for the processors: how long a person may take to answer a permission request, in seconds.
	Patience int `json:",omitzero"`
}

func isChild() bool { return os.Getenv(childVariable) != "" }

// runChild runs a part until ctx ends and returns the exit code.
func runChild(ctx context.Context, out, errs io.Writer) int {
	var s childSettings
	err := json.Unmarshal([]byte(os.Getenv(childVariable)), &s)
	if err == nil {
		logger := newLogger(errs, s.Verbose).Named(s.Part)
		ready := func() { fmt.Fprintln(out, readyLine) }
		switch s.Part {
		case processorsPart:
			err = runProcessors(ctx, s, logger, ready)
		case hostPart:
			err = runHost(ctx, s, logger, ready)
		default:
			err = fmt.Errorf("no part %q", s.Part)
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(errs, "crew: %s: %v\n", s.Part, err)
		return 1
	}
	return 0
}

// untilEOF returns a context that ends at the end of in.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// child is a process of one part.
type child struct {
	part  string
	cmd   *exec.Cmd
	in    io.Closer
	ready chan struct{}
	ended chan struct{}
	err   error // set when ended is closed
}

// spawn starts a part in a process of its own and waits until it is ready.
func spawn(ctx context.Context, s childSettings, errs io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	c := &child{part: s.Part, cmd: exec.Command(self), ready: make(chan struct{}), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(settings))
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
			if lines.Text() == readyLine {
				close(c.ready)
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
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("the %s ended before they were ready: %w", s.Part, c.err)
	case <-ctx.Done():
		c.kill()
		return nil, fmt.Errorf("the %s are not ready: %w", s.Part, context.Cause(ctx))
	}
}

// kill ends the process as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// stop lets the process end by itself.
func (c *child) stop() error {
	_ = c.in.Close()
	<-c.ended
	return c.err
}
