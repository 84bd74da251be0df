package whole

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
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
		w := newCrewPlace(t, guarantee)
		kill := w.serve()
		w.send("crew/c1", 1, crewSpawn())
		start := w.action(topics.CrewStart{}.CrewKind(), 1)
		w.send("host/north", 7_000_000_001, topics.CrewStarted{Run: start.ActionID})
		w.send("host/north", 7_000_000_002, topics.CrewSessionReady{Run: start.ActionID, SessionID: "s1"})
		w.action(topics.CrewSend{}.CrewKind(), 1)
		w.send("host/north", 7_000_000_003, crewAsks(start.ActionID, "r1", "npm test"))
		id := topics.GateID(crewAgentID, start.ActionID, "r1")
		asked, expires := w.pending(id)
		kill()

		kill = w.serve()
		again, expiresAgain := w.pending(id)
		require.Equal(t, asked, again)
		require.Equal(t, expires, expiresAgain)
		at, err := time.Parse(time.RFC3339, expires)
		require.NoError(t, err)
		require.Equal(t, asked.ExpiresAt, view.Time(at.UnixMilli()), "the gate has the deadline that people see")

		decision := topics.GateDecision{
			GateID: id, SessionID: crewAgentID, DecisionID: "d1", Verdict: topics.VerdictDeny, By: "ines", Via: "door",
		}
		out, err := processors.OutboundOf(w.topics.GateDecisions, crewAgentID, decision, "d1")
		require.NoError(t, err)
		require.NoError(t, w.to.Publish(t.Context(), out))
		action := w.action(topics.CrewAnswer{}.CrewKind(), 1)
		answer, err := topics.DecodeCrewBody[topics.CrewAnswer](action.Body)
		require.NoError(t, err)
		require.Equal(t, topics.CrewAnswer{
			AgentID: crewAgentID, Run: start.ActionID, RequestID: "r1", OptionID: "no", By: "ines",
		}, answer)
		require.Eventually(t, func() bool { return len(w.view().Permissions) == 0 }, waitLimit, 5*time.Millisecond)
		kill()
		require.Equal(t, 1, w.count(topics.CrewAnswer{}.CrewKind()))
	})
}

// crewPlace is a broker with the group of coding agents and the groups of gates.
type crewPlace struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher

	agents, gates *processors.Processor
}

func newCrewPlace(t *testing.T, guarantee processors.Guarantee) *crewPlace {
	t.Helper()
	w := &crewPlace{t: t, guarantee: guarantee, brokers: testbroker.Start(t)}
	var err error
	w.topics, err = topics.For(testbroker.Agent(), topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	w.to, err = processors.NewPublisher(w.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.to.Close()) })
	return w
}

// serve runs the groups until kill is called or the test ends.
func (w *crewPlace) serve() (kill func()) {
	w.t.Helper()
	agents, err := agent.Graph(w.topics.Agent)
	require.NoError(w.t, err)
	gates, err := gate.Graph(w.topics.Agent)
	require.NoError(w.t, err)
	grants, err := gate.GrantsGraph(w.topics.Agent)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	all := map[string]*processors.Processor{}
	for name, graph := range map[string]*goka.GroupGraph{"agents": agents, "gates": gates, "grants": grants} {
		p, err := processors.New(w.brokers, graph, w.options(name)...)
		require.NoError(w.t, err, name)
		all[name] = p
		running.Go(func() {
			if err := p.Run(ctx); err != nil && !errors.Is(err, processors.ErrKilled) {
				w.t.Errorf("%s: %v", name, err)
			}
		})
	}
	kill = sync.OnceFunc(func() {
		for _, p := range all {
			p.Kill()
		}
		cancel()
		running.Wait()
	})
	w.t.Cleanup(kill)
	for _, p := range all {
		require.Eventually(w.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	}
	w.gates, w.agents = all["gates"], all["agents"]
	return kill
}

func (w *crewPlace) options(instance string) []processors.Option {
	return []processors.Option{
		processors.WithTopics(w.topics), processors.WithPartitions(2), processors.WithInstance(instance),
		processors.WithGuarantee(w.guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

func (w *crewPlace) send(from string, number int64, body topics.CrewBody) {
	w.t.Helper()
	in := crewInputOf(from, number, body)
	out, err := processors.OutboundOf(w.topics.CrewAgentInputs, crewAgentID, in, in.InputID)
	require.NoError(w.t, err)
	require.NoError(w.t, w.to.Publish(w.t.Context(), out))
}

// committed returns the actions of a kind, without repeats.
func (w *crewPlace) committed(kind string) (list []topics.CrewAction) {
	w.t.Helper()
	known := map[string]bool{}
	for _, r := range allOf(w.t.Context(), w.t, w.brokers, w.topics.CrewActions.Name()) {
		a := w.topics.CrewActions.Codec().Unmarshal(r.Value).Value
		if a.Kind == kind && !known[headerOf(r, topics.HeaderID)] {
			known[headerOf(r, topics.HeaderID)] = true
			list = append(list, a)
		}
	}
	return list
}

func (w *crewPlace) count(kind string) int { w.t.Helper(); return len(w.committed(kind)) }

// action waits for the n-th action of a kind.
func (w *crewPlace) action(kind string, n int) (a topics.CrewAction) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		list := w.committed(kind)
		if len(list) < n {
			return false
		}
		a = list[n-1]
		return true
	}, waitLimit, 20*time.Millisecond, kind)
	return a
}

func (w *crewPlace) view() view.Agent {
	row, err := w.agents.Get(crewAgentID)
	if err != nil {
		return view.Agent{}
	}
	s, err := agent.RowOf(row)
	if err != nil {
		return view.Agent{}
	}
	return agent.View(crewAgentID, s)
}

// pending waits until a client sees the only open request, and a person its gate, and returns it with the deadline of the gate.
func (w *crewPlace) pending(gateID string) (asked view.PermissionAsked, expires string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		open := w.view().Permissions
		gates, err := gate.Inspect(w.gates, crewAgentID)
		if err != nil || len(open) != 1 || len(gates) != 1 {
			return false
		}
		asked, expires = open[0], gates[0].ExpiresAt
		return asked.ID == gateID && gates[0].GateID == gateID
	}, waitLimit, 5*time.Millisecond)
	return asked, expires
}
