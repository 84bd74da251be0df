package agenttest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent/internal/parts"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// A worker handles each record in a goroutine, because a handler returns only when its record is settled. At most one of
// these goroutines runs at a time, and the test's goroutine waits meanwhile: until the handler returns, or waits for what
// only the test can do. So the order is always the same, and the goroutines share the fields of Agent without a lock.

// limit is how long a worker may run before the test fails, by the system's clock.
const limit = 30 * time.Second

// leeway is how long a call may wait for the test at least, by the system's clock. A worker ends the context of a call by that
// clock: a shorter timeout, which is meant for the test's, would pass while the test runs.
const leeway = time.Minute

// handler is a worker of the agent.
type handler struct{ parts.Worker }

// call is a record that a worker handles.
type call struct {
	worker   *handler
	record   processors.Inbound
	id       string    // turntable.id of the record
	deadline time.Time // zero if it has none
	cancel   context.CancelFunc
	pauses   int // how often it has waited before its function was called again
	events   chan event
	wait     wait // what it waits for, if it is open
}

// event is what a call tells the test's goroutine.
type event struct {
	ended  bool
	wait   wait
	exited string // whose function ended its goroutine
}

// wait is what a call waits for: one of the fields is set.
type wait struct {
	model  chan struct{} // closed when there is a reply
	tool   *held
	ticker *ticker
}

type callOf struct{}

// work lets the agent work until everything that is open waits for the test.
func (s *Agent) work() {
	s.tb.Helper()
	for {
		s.collect()
		if !s.resume() && !s.begin() {
			return
		}
	}
}

// collect takes what the graphs have written: records for the workers, and outputs.
func (s *Agent) collect() {
	s.tb.Helper()
	for _, w := range s.workers {
		if !slices.Contains(s.written, w.Topic) {
			continue
		}
		for _, r := range processortest.OutRaw(s.driver, w.Topic).Drain() {
			s.waiting = append(s.waiting, s.newCall(w, inboundOf(r)))
		}
	}
	for _, r := range processortest.Out(s.driver, s.catalog.MessageOutput).Drain() {
		s.observe(r)
		ended := responder.TurnOf(r.ID())
		in := inboundOf(r)
		for _, w := range s.workers {
			if w.Observe != nil {
				w.Observe(in)
			}
		}
		s.settle(func(c *call) bool { return c.wait.ticker == nil && ended != "" && responder.TurnOf(c.id) == ended })
	}
}

func (s *Agent) newCall(w *handler, in processors.Inbound) *call {
	c := &call{worker: w, record: in, id: string(in.Header(topics.HeaderID)), events: make(chan event, 1)}
	c.deadline, _ = topics.Deadline(in.Header(topics.HeaderDeadline))
	return c
}

func inboundOf[T any](r processortest.Record[T]) processors.Inbound {
	in := processors.Inbound{Topic: r.Topic, Offset: r.Offset, Timestamp: r.Timestamp, Value: r.Raw}
	if !r.NullKey {
		in.Key = []byte(r.Key)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		in.Headers = append(in.Headers, processors.Header{Name: name, Value: r.Headers[name]})
	}
	return in
}

// resume continues the first call that the test has answered. It reports whether there was one.
func (s *Agent) resume() bool {
	for _, c := range s.open {
		switch {
		case c.wait.model != nil && len(s.script) > 0:
			close(s.turnTo(c).model)
		case c.wait.tool != nil && !s.tools[c.wait.tool.name].held:
			close(s.turnTo(c).tool.release)
		default:
			continue
		}
		s.await(c)
		return true
	}
	return false
}

// begin begins the next call. A repeat of an open one waits for it, as in a worker.
func (s *Agent) begin() bool {
	i := slices.IndexFunc(s.waiting, func(c *call) bool {
		return !slices.ContainsFunc(s.open, func(o *call) bool { return o.id == c.id && o.worker == c.worker })
	})
	if i < 0 {
		return false
	}
	c := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), callOf{}, c))
	c.cancel = cancel
	s.open = append(s.open, c)
	s.turnTo(c)
	in := c.delivered(s.Now())
	go func() {
		defer cancel()
		e := event{ended: true, exited: "the worker of " + in.Topic}
		defer func() { c.events <- e }() // also if a function of the agent ends the goroutine
		_ = c.worker.Handle(ctx, in)     // an error says that ctx ended
		e.exited = ""
	}()
	s.await(c)
	return true
}

// turnTo makes a call the one that runs next, and returns what it has waited for.
func (s *Agent) turnTo(c *call) (waited wait) {
	waited, c.wait = c.wait, wait{}
	s.current = c
	return waited
}

// delivered returns the record of a call as its worker gets it.
func (c *call) delivered(now time.Time) processors.Inbound {
	r := c.record
	if later := now.Add(leeway); c.deadline.After(now) && c.deadline.Before(later) {
		r.Headers = slices.Clone(r.Headers)
		for i := range r.Headers {
			if r.Headers[i].Name == topics.HeaderDeadline {
				r.Headers[i].Value = topics.AppendDeadline(nil, later.UnixMilli())
			}
		}
	}
	return r
}

// due returns when a call must be answered; other is what its worker was told.
func (c *call) due(other time.Time) time.Time {
	if c.deadline.IsZero() {
		return other
	}
	return c.deadline
}

// await blocks while a call runs, and passes on what it has published.
func (s *Agent) await(c *call) {
	s.tb.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	var e event
	select {
	case e = <-c.events:
	case <-late.C:
		s.tb.Fatalf("agenttest: the handler of %s offset %d has not returned for %v: if a tool waits for the end of its context or for another service, use Hold or Replace",
			c.record.Topic, c.record.Offset, limit)
	}
	c.wait = e.wait
	if e.ended {
		s.open = slices.DeleteFunc(s.open, func(o *call) bool { return o == c })
	}
	if e.exited != "" && !s.ended {
		s.tb.Fatalf("agenttest: the function of %s ended its goroutine, as t.FailNow does", e.exited)
	}
	for _, out := range s.published {
		if s.ended {
			break
		}
		processortest.InRaw(s.driver, out.Topic).PipeRaw(out.Key, out.Value, processortest.WithHeaders(out.Headers))
	}
	s.published = nil
}

// park makes the goroutine of a call wait for the test.
func (c *call) park(w wait) { c.events <- event{wait: w} }

// interrupt ends open calls as the end of their process does, and returns them.
func (s *Agent) interrupt(which func(*call) bool) []*call {
	return s.settle(func(c *call) bool {
		if !which(c) {
			return false
		}
		s.turnTo(c)
		c.cancel()
		return true
	})
}

// settle waits for the end of open calls whose context has ended, and returns them.
func (s *Agent) settle(which func(*call) bool) (ended []*call) {
	for _, c := range slices.Clone(s.open) {
		if which(c) {
			s.await(c)
			ended = append(ended, c)
		}
	}
	return ended
}

// publisher takes what the workers publish.
type publisher struct{ s *Agent }

func (p publisher) Publish(_ context.Context, records ...processors.Outbound) error {
	p.s.published = append(p.s.published, records...)
	return nil
}
