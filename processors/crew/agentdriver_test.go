package crew_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// crewDriver has a coding agent and the gates of its permission requests, without a broker. The test is the crew, the host and
// the people.
type crewDriver struct {
	*processortest.Driver
	t         *testing.T
	topics    topics.Catalog
	inputs    *processortest.Input[topics.CrewInput]
	locks     *processortest.Input[topics.CrewInput]
	decisions *processortest.Input[topics.GateDecision]
	actions   *processortest.Output[topics.CrewAction]
	events    *processortest.Output[topics.CrewEvent]
	outcomes  *processortest.Output[topics.GateOutcome]
	letters   *processortest.Output[[]byte]
	agents    *processortest.GroupTable[*agent.State]
	gates     *processortest.GroupTable[*gaterow.State]
	number    int64
	run       string
}

var crewNoon = time.UnixMilli(1_790_000_000_000).UTC()

func newCrewDriver(t *testing.T) *crewDriver {
	t.Helper()
	c, err := topics.For("quay", topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	graphs, err := crew.Graphs("quay", crew.Config{})
	require.NoError(t, err)
	gates, err := gate.Graph("quay", gate.Config{})
	require.NoError(t, err)
	grants, err := gate.GrantsGraph("quay", gate.Config{})
	require.NoError(t, err)
	d := processortest.New(t, crewNoon, grants, gates, graphs[0], graphs[2])
	w := &crewDriver{
		Driver: d, t: t, topics: c, inputs: processortest.In(d, c.CrewAgentInputs),
		locks: processortest.In(d, c.CrewRepositoryInputs), decisions: processortest.In(d, c.GateDecisions),
		actions: processortest.Out(d, c.CrewActions), events: processortest.Out(d, c.CrewEvents),
		outcomes: processortest.Out(d, c.GateOutcomes), letters: processortest.OutRaw(d, "quay-gate-streams-dlq"),
		agents: processortest.Table(d, c.CrewAgentsGroup(), agent.Table.Codec()),
		gates:  processortest.Table(d, c.GateGroup(), gaterow.Table.Codec()),
	}
	others := processortest.Out(d, c.CrewInputs)
	given := processortest.Out(d, c.GateGrants)
	t.Cleanup(func() { // what no test looks at
		w.actions.Drain()
		w.events.Drain()
		w.outcomes.Drain()
		others.Drain()
		given.Drain()
	})
	w.crew(crewSpawn())
	for _, a := range w.actions.Drain() {
		if a.Value.Kind == (crewbody.Start{}).Kind() {
			w.run = a.Value.ActionID
		}
	}
	require.NotEmpty(t, w.run)
	w.host(crewbody.Started{Run: w.run})
	w.host(crewbody.SessionReady{Run: w.run, SessionID: "s1"})
	w.actions.Drain()
	w.events.Drain()
	return w
}

func crewSpawn() crewbody.Spawn {
	return crewbody.Spawn{
		Member: crewbody.Member{AgentID: crewAgentID, CrewID: "c1", RoleID: "developer", RoleName: "Developer", Host: "north"},
		Prompt: "You are a developer.",
	}
}

func crewInputOf(from string, number int64, body crewbody.Body) topics.CrewInput {
	return topics.CrewInput{
		InputID: fmt.Sprintf("%s>%d", from, number), Kind: body.Kind(), From: from, Number: number, Body: crewbody.Encode(body),
	}
}

func (w *crewDriver) crew(body crewbody.Body) {
	w.t.Helper()
	w.number++
	w.inputs.Pipe(crewAgentID, crewInputOf("crew/c1", w.number, body))
}

func (w *crewDriver) host(body crewbody.Body) {
	w.t.Helper()
	w.number++
	w.inputs.Pipe(crewAgentID, crewInputOf("host/north", 7_000_000_000+w.number, body))
}

func crewAsks(run, id, command string) crewbody.Permission {
	return crewbody.Permission{
		Run: run, RequestID: id, SessionID: "s1", Options: topics.Raw(crewOptions),
		ToolCall: topics.Raw(fmt.Sprintf(`{"toolCallId":"call-%s","title":"Run it","kind":"execute","rawInput":{"command":%q}}`, id, command)),
	}
}

// asks has the agent ask for permission to run a command, and returns the ID of the gate.
func (w *crewDriver) asks(id, command string) string {
	w.t.Helper()
	w.host(crewAsks(w.run, id, command))
	return topics.GateID(crewAgentID, w.run, id)
}

func (w *crewDriver) decide(gateID, decisionID string, verdict topics.GateVerdict, scope topics.GateScope) {
	w.t.Helper()
	w.decisions.Pipe(crewAgentID, topics.GateDecision{
		GateID: gateID, SessionID: crewAgentID, DecisionID: decisionID, Verdict: verdict, Scope: scope, By: "ines", Via: "door",
	})
}

// answers returns the new answers to the host as "request: option by whom".
func (w *crewDriver) answers() (list []string) {
	w.t.Helper()
	for _, r := range w.actions.Drain() {
		if r.Value.Kind != (crewbody.Answer{}).Kind() {
			continue
		}
		a, err := crewbody.Decode[crewbody.Answer](r.Value.Body)
		require.NoError(w.t, err)
		list = append(list, fmt.Sprintf("%s: %s by %s", a.RequestID, a.OptionID, a.By))
	}
	return list
}

func (w *crewDriver) view() view.Agent {
	w.t.Helper()
	s, ok := w.agents.Get(crewAgentID)
	require.True(w.t, ok)
	return agent.View(crewAgentID, s)
}

// wait advances the clock while the host says that it is alive.
func (w *crewDriver) wait(d time.Duration) {
	w.t.Helper()
	for end := w.Now().Add(d); w.Now().Before(end); {
		w.host(crewbody.HostBeat{Run: w.run})
		w.Advance(min(10*time.Second, end.Sub(w.Now())))
	}
}
