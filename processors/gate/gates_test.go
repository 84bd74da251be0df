package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/processortest/gates"
	"github.com/turntable-streams/turntable/topics"
)

func start(t *testing.T) (*processortest.Driver, topics.Catalog) {
	t.Helper()
	catalog, err := topics.For("quay")
	require.NoError(t, err)
	policy := gate.Config{Policy: approval.Policy{TTL: time.Minute}}
	graph, err := gate.Graph("quay", policy)
	require.NoError(t, err)
	grants, err := gate.GrantsGraph("quay", policy)
	require.NoError(t, err)
	return processortest.New(t, time.UnixMilli(1_790_000_000_000), grants, graph), catalog
}

// An agent's program is tested like this: its own graph runs beside the gates, and the test is the person who decides.
func TestPersonDecides(t *testing.T) {
	driver, catalog := start(t)
	g := gates.New(t, driver, "quay")
	outcomes := processortest.Out(driver, catalog.GateOutcomes)
	requests := processortest.In(driver, catalog.GateRequests)
	ask := func(id string, allowed ...topics.GateVerdict) gate.View {
		requests.Pipe("s1", topics.GateRequest{
			GateID: id, SessionID: "s1", Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":250}`), Allowed: allowed,
		})
		return g.Only("s1")
	}

	g.Approve(ask("g1"))
	require.Equal(t, topics.GateApproved, outcomes.Next().Value.Status)
	require.Equal(t, gates.Person, g.Outcome("s1", "g1").By)

	g.Deny(ask("g2"), "too much")
	require.Equal(t, "too much", outcomes.Next().Value.Reason)

	edited := ask("g3", topics.VerdictApprove, topics.VerdictEdit)
	g.Decide(edited, topics.GateDecision{Verdict: topics.VerdictApprove, EditedArgs: topics.Raw(`{"cents":100}`)})
	require.JSONEq(t, `{"cents":100}`, string(outcomes.Next().Value.EffectiveArgs))

	g.Expire(ask("g4"))
	require.Equal(t, topics.GateTimedOut, outcomes.Next().Value.Status)
	require.Empty(t, g.Open("s1"))
}

// failure is a test that records its failure and stops, as Fatalf does.
type failure struct {
	*testing.T
	text string
}

func (f *failure) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f)
}

func TestMistakesFailTheTest(t *testing.T) {
	driver, catalog := start(t)
	f := &failure{T: t}
	g := gates.New(f, driver, "quay")
	failed := func(call func()) string {
		f.text = ""
		require.Panics(t, call)
		return f.text
	}
	require.Contains(t, failed(func() { g.Only("s1") }), "0 open gates")
	require.Contains(t, failed(func() { g.Outcome("s1", "g1") }), "no outcome")
	require.Contains(t, failed(func() { gates.New(f, driver, " ") }), "agent")
	processortest.In(driver, catalog.GateRequests).Pipe("s1", topics.GateRequest{
		GateID: "g1", SessionID: "s1", Kind: topics.GateInput, Tool: "ask_user",
	})
	require.Contains(t, failed(func() { g.Approve(g.Only("s1")) }), "verdict is not allowed")
}
