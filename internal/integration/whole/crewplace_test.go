package whole

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/agent"
	"github.com/turntable-streams/turntable/processors/crew/view"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// A process with both groups is killed while a request waits. A client that connects to its successor sees the request with
// its deadline, and the answer arrives once.
func TestP14_PendingPermissionsSurviveARestartWithTheirDeadline(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		w := &permissionWorld{world: newWorld(t, guarantee, topics.WithCrews(), topics.WithGates())}
		kill := w.launch()
		w.send("crew/c1", 1, crewSpawn())
		start := w.action(topics.CrewStart{}.CrewKind(), 1)
		w.send("host/north", 7_000_000_001, topics.CrewStarted{Run: start.ActionID})
		w.send("host/north", 7_000_000_002, topics.CrewSessionReady{Run: start.ActionID, SessionID: "s1"})
		w.action(topics.CrewSend{}.CrewKind(), 1)
		w.send("host/north", 7_000_000_003, crewAsks(start.ActionID, "r1", "npm test"))
		id := topics.GateID(crewAgentID, start.ActionID, "r1")
		asked, expires := w.pending(id)
		kill()

		kill = w.launch()
		again, expiresAgain := w.pending(id)
		require.Equal(t, asked, again)
		require.Equal(t, expires, expiresAgain)
		at, err := time.Parse(time.RFC3339, expires)
		require.NoError(t, err)
		require.Equal(t, asked.ExpiresAt, view.Time(at.UnixMilli()), "the gate has the deadline that people see")

		decision := topics.GateDecision{
			GateID: id, SessionID: crewAgentID, DecisionID: "d1", Verdict: topics.VerdictDeny, By: "ines", Via: "door",
		}
		require.NoError(t, put(t.Context(), w.world, w.catalog.GateDecisions, crewAgentID, decision, "d1"))
		action := w.action(topics.CrewAnswer{}.CrewKind(), 1)
		answer, err := topics.DecodeCrewBody[topics.CrewAnswer](action.Body)
		require.NoError(t, err)
		require.Equal(t, topics.CrewAnswer{
			AgentID: crewAgentID, Run: start.ActionID, RequestID: "r1", OptionID: "no", By: "ines",
		}, answer)
		w.eventually(func() bool { return len(w.view().Permissions) == 0 })
		kill()
		require.Equal(t, 1, w.count(topics.CrewAnswer{}.CrewKind()))
	})
}

// permissionWorld is the group of coding agents and the groups of gates.
type permissionWorld struct {
	*world
	agents, gates *running
}

// launch runs the groups until kill is called or the test ends.
func (w *permissionWorld) launch() (kill func()) {
	w.t.Helper()
	w.agents = w.start("agents", w.catalog, must(agent.Graph(w.agent)))
	w.gates = w.start("gates", w.catalog, must(gate.Graph(w.agent)))
	groups := []*running{w.agents, w.gates, w.start("grants", w.catalog, must(gate.GrantsGraph(w.agent)))}
	for _, g := range groups {
		g.await()
	}
	return func() {
		for _, g := range groups {
			g.Kill()
		}
		for _, g := range groups {
			g.stop()
		}
	}
}

func (w *permissionWorld) send(from string, number int64, body topics.CrewBody) {
	w.t.Helper()
	in := crewInputOf(from, number, body)
	require.NoError(w.t, put(w.ctx, w.world, w.catalog.CrewAgentInputs, crewAgentID, in, in.InputID))
}

// committed returns the actions of a kind, without repeats.
func (w *permissionWorld) committed(kind string) (list []topics.CrewAction) {
	w.t.Helper()
	known := map[string]bool{}
	for _, r := range w.all(w.catalog.CrewActions.Name()) {
		a := w.catalog.CrewActions.Codec().Unmarshal(r.Value).Value
		if a.Kind == kind && !known[headerOf(r, topics.HeaderID)] {
			known[headerOf(r, topics.HeaderID)] = true
			list = append(list, a)
		}
	}
	return list
}

func (w *permissionWorld) count(kind string) int { w.t.Helper(); return len(w.committed(kind)) }

// action waits for the n-th action of a kind.
func (w *permissionWorld) action(kind string, n int) (a topics.CrewAction) {
	w.t.Helper()
	w.eventually(func() bool {
		list := w.committed(kind)
		if len(list) < n {
			return false
		}
		a = list[n-1]
		return true
	}, kind)
	return a
}

func (w *permissionWorld) view() view.Agent {
	row, err := w.agents.Get(crewAgentID)
	if err != nil {
		return view.Agent{}
	}
	s, err := agent.Table.Of(row)
	if err != nil {
		return view.Agent{}
	}
	return agent.View(crewAgentID, s)
}

// pending waits until a client sees the only open request, and a person its gate, and returns it with the deadline of the gate.
func (w *permissionWorld) pending(gateID string) (asked view.PermissionAsked, expires string) {
	w.t.Helper()
	w.eventually(func() bool {
		open := w.view().Permissions
		gates, err := gate.Inspect(w.gates.Processor, crewAgentID)
		if err != nil || len(open) != 1 || len(gates) != 1 {
			return false
		}
		asked, expires = open[0], gates[0].ExpiresAt
		return asked.ID == gateID && gates[0].GateID == gateID
	})
	return asked, expires
}
