package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/agent"
	"github.com/turntable-streams/turntable/processors/crew/repository"
	"github.com/turntable-streams/turntable/processors/crew/view"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

const (
	crewAgentID = "11112222-3333-4444-5555-666677778888"
	crewOptions = `[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},
		{"optionId":"no","name":"No","kind":"reject_once"}]`
)

// crewDesk has a coding agent and the gates of its permission requests, without a broker. The test is the crew, the host and
// the people.
type crewDesk struct {
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
	gates     *processortest.GroupTable[*gate.State]
	number    int64
	run       string
}

var crewNoon = time.UnixMilli(1_790_000_000_000).UTC()

func newCrewDesk(t *testing.T) *crewDesk {
	t.Helper()
	c, err := topics.For("quay", topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	agents, err := agent.Graph("quay")
	require.NoError(t, err)
	gates, err := gate.Graph("quay")
	require.NoError(t, err)
	grants, err := gate.GrantsGraph("quay")
	require.NoError(t, err)
	repositories, err := repository.Graph("quay")
	require.NoError(t, err)
	d := processortest.New(t, crewNoon, grants, gates, agents, repositories)
	w := &crewDesk{
		Driver: d, t: t, topics: c, inputs: processortest.In(d, c.CrewAgentInputs),
		locks: processortest.In(d, c.CrewRepositoryInputs), decisions: processortest.In(d, c.GateDecisions),
		actions: processortest.Out(d, c.CrewActions), events: processortest.Out(d, c.CrewEvents),
		outcomes: processortest.Out(d, c.GateOutcomes), letters: processortest.OutRaw(d, "quay-gate-streams-dlq"),
		agents: processortest.Table(d, c.CrewAgentsGroup(), agent.TableCodec()),
		gates:  processortest.Table(d, c.GateGroup(), gate.TableCodec()),
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
		if a.Value.Kind == (topics.CrewStart{}).CrewKind() {
			w.run = a.Value.ActionID
		}
	}
	require.NotEmpty(t, w.run)
	w.host(topics.CrewStarted{Run: w.run})
	w.host(topics.CrewSessionReady{Run: w.run, SessionID: "s1"})
	w.actions.Drain()
	w.events.Drain()
	return w
}

func crewSpawn() topics.CrewSpawn {
	return topics.CrewSpawn{
		Member: topics.CrewMember{AgentID: crewAgentID, CrewID: "c1", RoleID: "developer", RoleName: "Developer", Host: "north"},
		Prompt: "You are a developer.",
	}
}

func crewInputOf(from string, number int64, body topics.CrewBody) topics.CrewInput {
	return topics.CrewInput{
		InputID: fmt.Sprintf("%s>%d", from, number), Kind: body.CrewKind(), From: from, Number: number, Body: topics.EncodeCrewBody(body),
	}
}

func (w *crewDesk) crew(body topics.CrewBody) {
	w.t.Helper()
	w.number++
	w.inputs.Pipe(crewAgentID, crewInputOf("crew/c1", w.number, body))
}

func (w *crewDesk) host(body topics.CrewBody) {
	w.t.Helper()
	w.number++
	w.inputs.Pipe(crewAgentID, crewInputOf("host/north", 7_000_000_000+w.number, body))
}

func crewAsks(run, id, command string) topics.CrewPermission {
	return topics.CrewPermission{
		Run: run, RequestID: id, SessionID: "s1", Options: topics.Raw(crewOptions),
		ToolCall: topics.Raw(fmt.Sprintf(`{"toolCallId":"call-%s","title":"Run it","kind":"execute","rawInput":{"command":%q}}`, id, command)),
	}
}

// asks has the agent ask for permission to run a command, and returns the ID of the gate.
func (w *crewDesk) asks(id, command string) string {
	w.t.Helper()
	w.host(crewAsks(w.run, id, command))
	return topics.GateID(crewAgentID, w.run, id)
}

func (w *crewDesk) decide(gateID, decisionID string, verdict topics.GateVerdict, scope topics.GateScope) {
	w.t.Helper()
	w.decisions.Pipe(crewAgentID, topics.GateDecision{
		GateID: gateID, SessionID: crewAgentID, DecisionID: decisionID, Verdict: verdict, Scope: scope, By: "ines", Via: "door",
	})
}

// answers returns the new answers to the host as "request: option by whom".
func (w *crewDesk) answers() (list []string) {
	w.t.Helper()
	for _, r := range w.actions.Drain() {
		if r.Value.Kind != (topics.CrewAnswer{}).CrewKind() {
			continue
		}
		a, err := topics.DecodeCrewBody[topics.CrewAnswer](r.Value.Body)
		require.NoError(w.t, err)
		list = append(list, fmt.Sprintf("%s: %s by %s", a.RequestID, a.OptionID, a.By))
	}
	return list
}

func (w *crewDesk) view() view.Agent {
	w.t.Helper()
	s, ok := w.agents.Get(crewAgentID)
	require.True(w.t, ok)
	return agent.View(crewAgentID, s)
}

// wait advances the clock while the host says that it is alive.
func (w *crewDesk) wait(d time.Duration) {
	w.t.Helper()
	for end := w.Now().Add(d); w.Now().Before(end); {
		w.host(topics.CrewHostBeat{Run: w.run})
		w.Advance(min(10*time.Second, end.Sub(w.Now())))
	}
}

func TestP05_PendingAt59999msAndDeniedOnceAt60000ms(t *testing.T) {
	w := newCrewDesk(t)
	id := w.asks("r1", "npm test")
	w.wait(59_999 * time.Millisecond)
	require.Empty(t, w.answers())
	require.Len(t, w.view().Permissions, 1)
	w.wait(time.Millisecond)
	require.Equal(t, []string{"r1:  by deadline"}, w.answers(), "cancelled")
	require.Empty(t, w.view().Permissions)
	w.wait(10 * time.Minute)
	require.Empty(t, w.answers())
	outcomes := w.outcomes.Drain()
	require.Len(t, outcomes, 1)
	require.Equal(t, id, outcomes[0].Value.GateID)
	require.Equal(t, topics.GateTimedOut, outcomes[0].Value.Status)
}

func TestP06_LateAndRepeatedAnswersChangeNothing(t *testing.T) {
	w := newCrewDesk(t)
	late := w.asks("r1", "npm test")
	w.wait(time.Minute)
	require.Equal(t, []string{"r1:  by deadline"}, w.answers())
	w.decide(late, "d1", topics.VerdictApprove, "")
	require.Empty(t, w.answers())

	answered := w.asks("r2", "npm test")
	w.decide(answered, "d2", topics.VerdictApprove, "")
	require.Equal(t, []string{"r2: once by ines"}, w.answers())
	w.decide(answered, "d2", topics.VerdictApprove, "")
	w.decide(answered, "d3", topics.VerdictDeny, "")
	require.Empty(t, w.answers())
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
	require.Len(t, w.outcomes.Drain(), 2)
}

func TestP11_AnAnswerForAnUnknownAgentIsIgnored(t *testing.T) {
	w := newCrewDesk(t)
	w.asks("r1", "npm test")
	w.decisions.Pipe("nobody", topics.GateDecision{
		GateID: "g", SessionID: "nobody", DecisionID: "d1", Verdict: topics.VerdictApprove, By: "ines", Via: "door",
	})
	// The outcome of a gate that no agent knows.
	w.inputs.Pipe("nobody", topics.CrewInput{
		InputID: "g/outcome", Kind: (topics.CrewGateEnded{}).CrewKind(),
		Body: topics.EncodeCrewBody(topics.CrewGateEnded{GateID: "g", Status: topics.GateApproved}),
	})
	w.crew(topics.CrewGateEnded{GateID: "unknown", Status: topics.GateApproved})
	require.Empty(t, w.answers())
	require.Empty(t, w.outcomes.Drain())
	require.Len(t, w.view().Permissions, 1)
	_, known := w.agents.Get("nobody")
	require.False(t, known)
	w.wait(11 * time.Minute)
	require.Len(t, w.letters.Drain(), 1, "the group of gates gives the decision up")
}

// An approval for the session counts for the same command, and for no other. A dangerous request is asked each time, and its
// approval cannot count for more.
func TestP12_AlwaysAllowCountsForTheSameCommandOnly(t *testing.T) {
	for _, scope := range []topics.GateScope{topics.ScopeSession, topics.ScopeAgent} {
		t.Run(string(scope), func(t *testing.T) {
			w := newCrewDesk(t)
			w.decide(w.asks("r1", "npm test"), "d1", topics.VerdictApprove, scope)
			require.Equal(t, []string{"r1: once by ines"}, w.answers())
			w.asks("r2", "npm test")
			answers := w.answers()
			require.Len(t, answers, 1, "approved without a person")
			require.Contains(t, answers[0], "r2: once by ")
			w.asks("r3", "npm publish")
			require.Empty(t, w.answers(), "another command asks")

			dangerous := w.asks("r4", "rm -rf /opt")
			w.decide(dangerous, "d4", topics.VerdictApprove, scope)
			require.Empty(t, w.answers())
			require.Len(t, w.letters.Drain(), 1, "an approval of a dangerous request counts once")
			w.decide(dangerous, "d5", topics.VerdictApprove, "")
			require.Equal(t, []string{"r4: once by ines"}, w.answers())
			w.asks("r5", "rm -rf /opt")
			require.Empty(t, w.answers(), "a dangerous command asks again")
			require.True(t, w.view().Permissions[1].Dangerous)
		})
	}
}

func TestP09_ExitOrTerminateCancelsAllPendingAndNothingAnswersLater(t *testing.T) {
	for name, end := range map[string]func(*crewDesk){
		"exit":  func(w *crewDesk) { w.host(topics.CrewExited{Run: w.run, Code: 1}) },
		"crash": func(w *crewDesk) { w.host(topics.CrewExited{Run: w.run, Signal: "SIGKILL"}) },
		"terminate": func(w *crewDesk) {
			w.crew(topics.CrewTerminate{Reason: "done"})
			require.ElementsMatch(w.t, []string{"r1:  by parent_ended", "r2:  by parent_ended", "r3:  by parent_ended"}, w.answers())
			w.host(topics.CrewExited{Run: w.run})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCrewDesk(t)
			var ids []string
			for _, id := range []string{"r1", "r2", "r3"} {
				ids = append(ids, w.asks(id, "npm "+id))
				w.wait(10 * time.Second)
			}
			require.Len(t, w.view().Permissions, 3)
			w.answers()
			end(w)
			require.Empty(t, w.answers(), "there is no process to answer")
			require.Empty(t, w.view().Permissions)
			var cancelled []string
			for _, o := range w.outcomes.Drain() {
				require.Equal(t, topics.GateCancelled, o.Value.Status)
				require.Equal(t, topics.CauseParentEnded, o.Value.Cause)
				cancelled = append(cancelled, o.Value.GateID)
			}
			require.ElementsMatch(t, ids, cancelled)

			w.decide(ids[0], "d1", topics.VerdictApprove, "")
			w.host(crewAsks(w.run, "r4", "npm r4"))
			w.Advance(2 * time.Minute)
			require.Empty(t, w.answers(), "no timer and no person answers later")
			require.Empty(t, w.outcomes.Drain())
		})
	}
}

func TestP10_CancellingTheSessionAnswersAllItsPendingRequestsWithCancelled(t *testing.T) {
	w := newCrewDesk(t)
	ids := map[string]string{}
	for _, id := range []string{"r1", "r2", "r3"} {
		ids[id] = w.asks(id, "npm "+id)
	}
	w.decide(ids["r2"], "d1", topics.VerdictApprove, "")
	require.Equal(t, []string{"r2: once by ines"}, w.answers())
	w.outcomes.Drain()

	w.crew(topics.CrewInterrupt{})
	var answered []string
	cancels := 0
	for _, a := range w.actions.Drain() {
		switch a.Value.Kind {
		case topics.CrewCancel{}.CrewKind():
			require.Len(t, answered, 2, "the questions are answered before the session is cancelled")
			cancels++
		case topics.CrewAnswer{}.CrewKind():
			body, err := topics.DecodeCrewBody[topics.CrewAnswer](a.Value.Body)
			require.NoError(t, err)
			require.Empty(t, body.OptionID, "cancelled")
			answered = append(answered, body.RequestID)
		}
	}
	require.Equal(t, []string{"r1", "r3"}, answered)
	require.Equal(t, 1, cancels)
	require.Empty(t, w.view().Permissions)
	for _, o := range w.outcomes.Drain() {
		require.Equal(t, topics.GateCancelled, o.Value.Status)
	}
	w.asks("r4", "npm r4")
	require.Equal(t, []string{"r4:  by cancelled"}, w.answers(), "until the turn has ended")
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
}

func TestP13_AutopilotDecidesTheNextRequestAndPendingOnesKeepWaiting(t *testing.T) {
	w := newCrewDesk(t)
	kept := w.asks("r1", "npm r1")
	w.asks("r2", "npm r2")
	w.wait(20 * time.Second)
	w.crew(topics.CrewAutopilot{On: true})
	require.Empty(t, w.answers())
	require.Len(t, w.view().Permissions, 2)

	w.asks("r3", "npm r3")
	require.Equal(t, []string{"r3: once by autopilot"}, w.answers())
	w.asks("r4", "rm -rf /opt")
	require.Empty(t, w.answers(), "a dangerous request asks")
	require.Len(t, w.view().Permissions, 3)
	w.decide(kept, "d1", topics.VerdictApprove, "")
	require.Equal(t, []string{"r1: once by ines"}, w.answers())
	w.wait(39_999 * time.Millisecond)
	require.Empty(t, w.answers())
	w.wait(time.Millisecond)
	require.Equal(t, []string{"r2:  by deadline"}, w.answers(), "with its own deadline")
	w.wait(20 * time.Second)
	require.Equal(t, []string{"r4:  by deadline"}, w.answers())

	w.crew(topics.CrewAutopilot{})
	w.asks("r5", "npm r5")
	require.Empty(t, w.answers())
}

// The end of the turn withdraws the gate; the withdrawal's outcome and a person who is late change nothing.
func TestAWithdrawnPermissionHasOneAnswerAndOneOutcome(t *testing.T) {
	w := newCrewDesk(t)
	id := w.asks("r1", "npm test")
	w.crew(topics.CrewInterrupt{})
	require.Equal(t, []string{"r1:  by superseded"}, w.answers())
	w.decide(id, "d1", topics.VerdictApprove, "")
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
	outcomes := w.outcomes.Drain()
	require.Len(t, outcomes, 1)
	require.Equal(t, topics.GateCancelled, outcomes[0].Value.Status)
}

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
