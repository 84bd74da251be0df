package agenttest

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/internal/parts"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/processortest/gates"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Start is the time at which the clock of a test begins.
var Start = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// Agent is an agent in a test. New returns one. Only the test's goroutine may use it. A mistake fails the test at once with
// Fatalf of its TB.
type Agent struct {
	tb        processortest.TB
	driver    *processortest.Driver
	catalog   topics.Catalog
	read      []string     // the topics that the graphs read
	written   []string     // and those that they write
	gates     *gates.Gates // nil without approvals
	committed *processortest.Snapshot

	workers   []*handler
	waiting   []*call // calls that a worker has not begun
	open      []*call // calls that wait for the test, in the order in which they began
	current   *call   // the one whose goroutine runs
	published []processors.Outbound
	strays    []processors.Outbound // published and read by no graph
	patience  time.Duration         // how long a worker may run, by the system's clock

	script  []scripted
	asked   []think.Step
	tools   map[string]*tool
	outputs []*output
}

// New runs an agent until the test ends. It does not call Agent.Run, and needs neither brokers nor a Config.Model that
// works. The same agent can be passed to several tests, also at a time, as far as its tools allow it.
func New(tb processortest.TB, a *agent.Agent) *Agent {
	tb.Helper()
	graphs, err := a.Graphs()
	if err != nil {
		tb.Fatalf("agenttest: %v", err)
	}
	s := &Agent{
		tb: tb, driver: processortest.New(tb, Start, graphs...), catalog: a.Topics(),
		tools: map[string]*tool{}, patience: patience,
	}
	for _, g := range graphs {
		s.read = append(s.read, g.InputStreams().Topics()...)
		s.written = append(s.written, g.OutputStreams().Topics()...)
	}
	made, err := parts.Of(a, parts.Options{
		To: publisher{s}, Model: think.Func(s.think), Tool: s.tool,
		Config: worker.Config{
			Logger: zap.NewNop(), Clock: clock{s}, Concurrency: 1 << 10, Limiter: worker.NewLimiterAt(&unlimited{}),
		},
	})
	if err != nil {
		tb.Fatalf("agenttest: %v", err)
	}
	for _, w := range made {
		s.workers = append(s.workers, &handler{Worker: w})
	}
	if slices.ContainsFunc(graphs, func(g *goka.GroupGraph) bool { return g.Group() == s.catalog.GateGroup() }) {
		s.gates = gates.New(tb, s.driver, s.catalog.Agent)
	}
	s.committed = s.driver.Snapshot()
	tb.Cleanup(s.end) // before that of the driver, which finds the unread outputs
	return s
}

// Driver returns the driver that runs the groups of the agent, for tests that write or read records of their own, or that
// look at tables. After a record was written, the next method of Agent lets the agent work on.
func (s *Agent) Driver() *processortest.Driver { return s.driver }

// Now returns the time of the test's clock.
func (s *Agent) Now() time.Time { return s.driver.Now() }

// Say writes a text of a user to a session.
func (s *Agent) Say(session, text string) {
	s.tb.Helper()
	content, err := json.Marshal(text)
	if err != nil {
		s.tb.Fatalf("agenttest: the text for session %s: %v", session, err)
	}
	s.Write(session, topics.Message{Content: content})
}

// Write writes a message to a session, for example one with a UserID or with Metadata. Where they are nil, it sets SessionID,
// the role "user" and the time.
func (s *Agent) Write(session string, m topics.Message) {
	s.tb.Helper()
	user, at := "user", topics.Timestamp(s.Now())
	for _, f := range []struct {
		field **string
		value *string
	}{{&m.SessionID, &session}, {&m.Role, &user}, {&m.Timestamp, &at}} {
		if *f.field == nil {
			*f.field = f.value
		}
	}
	processortest.In(s.driver, s.catalog.MessageInput).Pipe(session, m)
	s.work()
}

// Advance moves the clock forward. What becomes due meanwhile happens at its time and in its order: timeouts of turns, tools
// and gates, and repeated calls of a model that was unavailable. What has happened then is committed, see Crash.
func (s *Agent) Advance(by time.Duration) {
	s.tb.Helper()
	s.work()
	end := s.Now().Add(by)
	for {
		at, ok := s.next()
		if !ok || at.After(end) {
			break
		}
		s.driver.Advance(max(at.Sub(s.Now()), 0))
		s.wake()
		s.work()
		s.interrupt(func(c *call) bool { return !c.deadline.IsZero() && !c.deadline.After(s.Now()) })
		s.work()
	}
	s.driver.Advance(end.Sub(s.Now()))
	s.Commit()
}

// next returns when the clock is waited for next.
func (s *Agent) next() (at time.Time, ok bool) {
	at, ok = s.driver.NextDeadline()
	for _, c := range s.open {
		if c.wait.ticker != nil && (!ok || c.wait.ticker.at.Before(at)) {
			at, ok = c.wait.ticker.at, true
		}
	}
	return at, ok
}

