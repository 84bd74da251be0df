package agenttest

import (
	"context"
	"errors"

	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// tool is a tool of the agent.
type tool struct {
	run      tools.Func
	replaced bool
	held     bool
	calls    []tools.Call
	crashes  map[string]int // how many crashes there were before the last call, by the key of the call
}

// held is a call of a tool that has run, and whose result the test holds.
type held struct {
	name    string
	release chan struct{}
}

// Replace runs a function instead of the agent's for the calls of a tool from now on: the test answers in its place. The
// function may panic, to show what the agent does then; a panic of a tool that is not replaced fails the test.
func (s *Agent) Replace(name string, f tools.Func) {
	s.tb.Helper()
	s.work()
	t := s.named(name)
	t.run, t.replaced = f, true
}

// Hold lets the calls of a tool run from now on, but holds their results: what the function does is done, and the agent has
// not been told. With Crash and Release a test shows that a call that was interrupted is made again, with the same
// tools.Call.Key, and does no harm; with Advance that a turn continues without the result.
func (s *Agent) Hold(name string) {
	s.tb.Helper()
	s.work()
	s.named(name).held = true
}

// Release ends Hold: the held calls end in the order in which they began.
func (s *Agent) Release(name string) {
	s.tb.Helper()
	s.named(name).held = false
	s.work()
}

// Calls returns the calls of a tool so far, in the order in which they began. A call that was made again after a crash is in
// it again, with the same Key.
func (s *Agent) Calls(name string) []tools.Call {
	s.tb.Helper()
	s.work()
	return s.named(name).calls
}

func (s *Agent) named(name string) *tool {
	s.tb.Helper()
	t := s.tools[name]
	if t == nil {
		s.tb.Fatalf("agenttest: agent %s has no tool %s in its Config.Tools", s.catalog.Agent, name)
	}
	return t
}

// tool returns the function that the worker runs for a tool.
func (s *Agent) tool(name string, own tools.Func) tools.Func {
	t := &tool{run: own, crashes: map[string]int{}}
	s.tools[name] = t
	return func(ctx context.Context, c tools.Call) (any, error) {
		of := callFrom(ctx)
		c.Deadline = of.due(c.Deadline)
		if before, ok := t.crashes[c.Key()]; ok && before == s.crashes {
			s.tb.Errorf("agenttest: session %s: call %s of tool %s was made again without a crash", c.SessionID, c.Key(), name)
		}
		t.crashes[c.Key()] = s.crashes
		t.calls = append(t.calls, c)
		value, err := s.run(ctx, t, c)
		if t.held {
			release := make(chan struct{})
			of.park(wait{tool: &held{name, release}})
			select {
			case <-release:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return value, err
	}
}

// run runs a function in a goroutine of its own, which t.FailNow ends. The worker makes a result of a panic, which hides it from
// the test: so a panic of a tool of the agent fails the test, and one of a function of Replace is logged.
func (s *Agent) run(ctx context.Context, t *tool, c tools.Call) (value any, err error) {
	err = errExited
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				report := s.tb.Errorf
				if t.replaced {
					report = s.tb.Logf
				}
				report("agenttest: tool %s panicked: %v", c.Name, p)
				err = errPanic
			}
		}()
		value, err = t.run(ctx, c)
	}()
	<-ended
	if errors.Is(err, errExited) {
		callFrom(ctx).events <- event{exited: "tool " + c.Name}
		<-ctx.Done() // the test's goroutine runs
	}
	return value, err
}

var (
	errExited = errors.New("the tool ended its goroutine")
	errPanic  = errors.New("the tool panicked")
)

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callOf{}).(*call)
	return c
}
