package invoke

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// For any order of records, repeated or not, the index has the first outcome of each gate, and is within its limits.
func TestGateIndexIsBoundedAndKeepsTheFirstOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newGateIndex(time.Hour, 3, 5)
		now := time.Unix(100_000, 0)
		first := map[string]*topics.GateOutcome{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				session := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session")
				g := knownGate{session: session, gate: session + fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "gate")), turn: "t", touched: now}
				if rapid.Bool().Draw(t, "outcome") {
					g.outcome = &topics.GateOutcome{DecisionID: fmt.Sprint(len(first))}
				}
				if x.find(g.session, g.gate) == nil {
					delete(first, g.gate)
				}
				if first[g.gate] == nil {
					first[g.gate] = g.outcome
				}
				x.add(g, now)
				require.Same(t, first[g.gate], x.find(g.session, g.gate).outcome)
			},
			"wait": func(t *rapid.T) { now = now.Add(20 * time.Minute) },
			"": func(t *rapid.T) {
				n := 0
				for session, gates := range x.sessions {
					require.NotEmpty(t, gates, session)
					require.LessOrEqual(t, len(gates), 3)
					n += len(gates)
				}
				require.Equal(t, x.recent.Len(), n)
				require.LessOrEqual(t, n, 5)
			},
		})
		x.add(knownGate{session: "z", gate: "z", touched: now.Add(2 * time.Hour)}, now.Add(2*time.Hour))
		require.Equal(t, 1, x.recent.Len(), "gates without a record within the look-back are forgotten")
	})
}

func TestGateIndexListsTurnsWithOpenGatesFirst(t *testing.T) {
	x := newGateIndex(time.Hour, 10, 10)
	now := time.Unix(100_000, 0)
	for i, g := range []knownGate{
		{gate: "1", turn: "open"},
		{gate: "2", turn: "decided", outcome: &topics.GateOutcome{}},
		{gate: "3", turn: "newer"},
		{gate: "4", turn: "newest", outcome: &topics.GateOutcome{}},
		{gate: "5", turn: "open", outcome: &topics.GateOutcome{}},
	} {
		g.session, g.touched = "s", now.Add(time.Duration(i))
		x.add(g, now.Add(time.Minute))
	}
	require.Equal(t, []string{"newer", "open", "newest", "decided"}, x.turns("s"))
	x.add(knownGate{session: "s", gate: "old", turn: "old", touched: now.Add(-2 * time.Hour)}, now)
	require.Nil(t, x.find("s", "old"))
}

func TestOnlyGatesOfInteractionsAreIndexed(t *testing.T) {
	c, err := topics.For("pilot")
	require.NoError(t, err)
	call := folder.GateCall("t", 1, 0)
	id := topics.GateID("s", "t", call)
	outcome := func(o topics.GateOutcome) processors.Inbound {
		raw, err := c.GateOutcomes.Codec().Marshal(o)
		require.NoError(t, err)
		return processors.Inbound{Topic: c.GateOutcomes.Name(), Key: []byte("s"), Value: raw}
	}
	request := func(r topics.GateRequest) processors.Inbound {
		raw, err := c.GateRequests.Codec().Marshal(r)
		require.NoError(t, err)
		return processors.Inbound{Topic: c.GateRequests.Name(), Key: []byte("s"), Value: raw}
	}
	o := topics.GateOutcome{GateID: id, SessionID: "s", TurnID: "t", CallID: call, Status: topics.GateDenied, Answer: topics.Raw("1")}
	g, ok := gateIn(&c, outcome(o))
	require.True(t, ok)
	require.Equal(t, "t", g.turn)
	require.Nil(t, g.outcome.Answer, "the turn has it")
	g, ok = gateIn(&c, request(topics.GateRequest{GateID: id, SessionID: "s", CallID: call, Kind: topics.GateTool, Tool: "pay"}))
	require.True(t, ok)
	require.Nil(t, g.outcome)
	for name, r := range map[string]processors.Inbound{
		"gate of a turn":  outcome(topics.GateOutcome{GateID: id, SessionID: "s", CallID: "t/0/tool-use/0", Status: topics.GateDenied}),
		"another gate":    outcome(topics.GateOutcome{GateID: "x", SessionID: "s", CallID: call, Status: topics.GateDenied}),
		"shadow":          outcome(topics.GateOutcome{GateID: id, SessionID: "s", CallID: call, Status: topics.GateDenied, Shadow: true}),
		"another session": outcome(topics.GateOutcome{GateID: id, SessionID: "x", CallID: call, Status: topics.GateDenied}),
		"no record":       {Topic: c.GateOutcomes.Name(), Key: []byte("s")},
		"no JSON":         {Topic: c.GateRequests.Name(), Key: []byte("s"), Value: []byte("{")},
		"withdrawal":      request(topics.GateRequest{GateID: id, SessionID: "s", Withdrawn: topics.CausePurged}),
	} {
		_, ok := gateIn(&c, r)
		require.False(t, ok, name)
	}
}
