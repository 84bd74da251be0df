package agenttest

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/internal/parts"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/processortest/gates"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Agent is an agent in a test. New returns one. Only the test's goroutine may use it. A mistake fails the test at once with
// Fatalf of its TB.
type Agent struct {
	tb        processortest.TB
	driver    *processortest.Driver
	catalog   topics.Catalog
	written   []string     // the topics that the graphs write
	gates     *gates.Gates // nil without approvals
	turns     *processortest.GroupTable[*turnrow.State]
	committed *processortest.Snapshot

	workers   []*handler
	waiting   []*call // calls that a worker has not begun
	open      []*call // calls that wait for the test, in the order in which they began
	current   *call   // the one whose goroutine runs
	published []processors.Outbound
	ended     bool // the test has ended: what the workers publish is dropped
	crashes   int

	script  []scripted
	asked   []think.Step
	tools   map[string]*tool
	given   []string        // the tools that the groups answer
	looked  map[string]bool // the IDs of the gates that the test has seen
	outputs []*output
}

// New runs an agent until the test ends. It does not call agent.Agent.Run and does not connect to brokers. Config.Model must not be
// nil, but is not called: think.Func(nil) is enough. The clock begins at the same time in each test. The same agent can be
// passed to several tests, also to parallel ones if its tools are safe for that.
func New(tb processortest.TB, a *agent.Agent) *Agent {
	tb.Helper()
	graphs, err := a.Graphs()
	if err != nil {
		tb.Fatalf("agenttest: %v", err)
	}
	s := &Agent{
		tb: tb, driver: processortest.New(tb, start, graphs...), catalog: a.Topics(),
		tools: map[string]*tool{}, looked: map[string]bool{},
	}
	s.turns = processortest.Table(s.driver, s.catalog.Group(), turnrow.Table.Codec())
	for _, g := range graphs {
		s.written = append(s.written, g.OutputStreams().Topics()...)
	}
	made, given, err := parts.Of(a, parts.Options{
		To: publisher{s}, Model: think.Func(s.think), Tool: s.tool,
		Config: worker.Config{
			Logger: zap.NewNop(), Clock: clock{s}, Concurrency: 1 << 10, Limiter: worker.NewLimiterAt(&unlimited{}),
		},
	})
	if err != nil {
		tb.Fatalf("agenttest: %v", err)
	}
	s.given = given
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
// look at tables. The agent handles a record that was written there at the next call of a method of Agent. Do not call
// Driver.Crash, Driver.Restore or Driver.Replay: without Agent.Crash, a repeated output or call of a tool fails the test.
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
