// Package gates answers the gates of package gate in tests that run on package processortest: it lists the open gates of a
// session, decides them as a person would, and lets them expire on the test's clock.
package gates

import (
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// Person is who decides in the records that Approve and Deny write.
const Person = "test"

// Gates are the gates of an agent in a test. New returns one. Only the test's goroutine may use it.
type Gates struct {
	tb        processortest.TB
	driver    *processortest.Driver
	table     *processortest.GroupTable[*gaterow.State]
	decisions *processortest.Input[topics.GateDecision]
	written   int
}

// New returns the gates of an agent. The driver must run gate.Graph of the agent, and gate.GrantsGraph if the test gives
// grants for the agent.
func New(tb processortest.TB, d *processortest.Driver, agent string) *Gates {
	tb.Helper()
	catalog, err := topics.For(agent)
	if err != nil {
		tb.Fatalf("gates: %v", err)
	}
	return &Gates{
		tb: tb, driver: d, table: processortest.Table(d, catalog.GateGroup(), gaterow.Table.Codec()),
		decisions: processortest.In(d, catalog.GateDecisions),
	}
}

// Open returns the open gates of a session, in the order in which they were opened.
func (g *Gates) Open(session string) []gate.View {
	g.tb.Helper()
	return g.views(session, func(v gate.View) bool { return v.Status == gate.StatusPending })
}

// Only returns the only open gate of a session. It fails the test if there is none or more than one.
func (g *Gates) Only(session string) gate.View {
	g.tb.Helper()
	open := g.Open(session)
	if len(open) != 1 {
		g.tb.Fatalf("gates: session %s has %d open gates, want 1", session, len(open))
	}
	return open[0]
}

// Outcome returns how a gate ended. It fails the test if the gate is open, unknown or forgotten.
func (g *Gates) Outcome(session, gateID string) gate.OutcomeView {
	g.tb.Helper()
	ended := g.views(session, func(v gate.View) bool { return v.GateID == gateID && v.Outcome != nil })
	if len(ended) != 1 {
		g.tb.Fatalf("gates: session %s has no outcome of gate %s", session, gateID)
	}
	return *ended[0].Outcome
}

// Approve approves a gate.
func (g *Gates) Approve(v gate.View) {
	g.tb.Helper()
	g.Decide(v, topics.GateDecision{Verdict: topics.VerdictApprove})
}

// Deny denies a gate with a reason for the model.
func (g *Gates) Deny(v gate.View, reason string) {
	g.tb.Helper()
	g.Decide(v, topics.GateDecision{Verdict: topics.VerdictDeny, Reason: reason})
}

// Decide writes a decision about a gate and blocks until every graph is idle. It fills in the IDs, ArgsSHA256 and By where
// they are empty. It fails the test if the gate does not accept such a decision.
func (g *Gates) Decide(v gate.View, d topics.GateDecision) {
	g.tb.Helper()
	g.written++
	fill := func(text *string, missing string) {
		if *text == "" {
			*text = missing
		}
	}
	fill(&d.GateID, v.GateID)
	fill(&d.SessionID, v.SessionID)
	fill(&d.DecisionID, "decision-"+strconv.Itoa(g.written))
	fill(&d.ArgsSHA256, v.ArgsSHA256)
	fill(&d.By, Person)
	if err := v.Check(d); err != nil {
		g.tb.Fatalf("gates: decide gate %s: %v", v.GateID, err)
	}
	g.decisions.Pipe(v.SessionID, d)
}

// Expire advances the clock to the deadline of an open gate, so that the gate times out. All other deadlines until then fire
// too.
func (g *Gates) Expire(v gate.View) {
	g.tb.Helper()
	at, err := time.Parse(time.RFC3339, v.ExpiresAt)
	if err != nil {
		g.tb.Fatalf("gates: expire gate %s: %v", v.GateID, err)
	}
	g.driver.Advance(max(at.Sub(g.driver.Now()), 0))
}

func (g *Gates) views(session string, which func(gate.View) bool) (views []gate.View) {
	g.tb.Helper()
	s, _ := g.table.Get(session)
	all, err := gate.Gates(session, s)
	if err != nil {
		g.tb.Fatalf("gates: %v", err)
	}
	for _, v := range all {
		if which(v) {
			views = append(views, v)
		}
	}
	return views
}
