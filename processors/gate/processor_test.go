package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// fixture runs both groups without a broker and holds their inputs and outputs.
type fixture struct {
	*processortest.Driver
	topics    topics.Catalog
	requests  *processortest.Input[topics.GateRequest]
	decisions *processortest.Input[topics.GateDecision]
	controls  *processortest.Input[topics.Control]
	grants    *processortest.Input[topics.GateGrant]
	outcomes  *processortest.Output[topics.GateOutcome]
	letters   *processortest.Output[[]byte]
	table     *processortest.GroupTable[*gaterow.State]
}

func newFixture(t *testing.T, config gate.Config) *fixture {
	t.Helper()
	c, err := topics.For("quay")
	require.NoError(t, err)
	gates, err := gate.Graph("quay", config)
	require.NoError(t, err)
	grants, err := gate.GrantsGraph("quay", config)
	require.NoError(t, err)
	d := processortest.New(t, noon, grants, gates)
	return &fixture{
		Driver: d, topics: c, requests: processortest.In(d, c.GateRequests), decisions: processortest.In(d, c.GateDecisions),
		controls: processortest.In(d, c.SessionControl), grants: processortest.In(d, c.GateGrants),
		outcomes: processortest.Out(d, c.GateOutcomes), letters: processortest.OutRaw(d, "quay-gate-streams-dlq"),
		table: processortest.Table(d, c.GateGroup(), gaterow.Table.Codec()),
	}
}

// ask writes a request to pay.
func (b *fixture) ask(session, id string) topics.GateRequest {
	r := topics.GateRequest{
		GateID: id, SessionID: session, Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":5}`), Effect: "ask",
	}
	b.requests.Pipe(session, r)
	return r
}

func (b *fixture) decide(session, id, decisionID string, verdict topics.GateVerdict, scope topics.GateScope) {
	b.decisions.Pipe(session, topics.GateDecision{
		GateID: id, SessionID: session, DecisionID: decisionID, Verdict: verdict, Scope: scope, By: "ines",
	})
}

func (b *fixture) open(t *testing.T, session string) []gate.View {
	t.Helper()
	s, _ := b.table.Get(session)
	open, err := gate.Gates(session, &gaterow.State{Open: s.GetOpen()})
	require.NoError(t, err)
	return open
}

func TestGateEndsWithItsDecision(t *testing.T) {
	b := newFixture(t, gate.Config{})
	b.ask("s1", "g1")
	require.Len(t, b.open(t, "s1"), 1)
	b.Advance(time.Second)
	b.decide("s1", "g1", "d1", topics.VerdictApprove, "")
	o := b.outcomes.Next()
	require.Equal(t, "g1/outcome", o.ID())
	require.Equal(t, "s1", o.Key)
	require.Equal(t, topics.GateApproved, o.Value.Status)
	require.EqualValues(t, 1000, o.Value.WaitedMS)
	require.NoError(t, b.Replay())
}

func TestGateIsClosedOnceAtItsDeadline(t *testing.T) {
	b := newFixture(t, gate.Config{Policy: approval.Policy{TTL: time.Minute}})
	b.ask("s1", "g1")
	b.Advance(59_999 * time.Millisecond)
	require.Zero(t, b.outcomes.Len())
	require.Len(t, b.open(t, "s1"), 1)
	b.Advance(time.Millisecond)
	o := b.outcomes.Next().Value
	require.Equal(t, topics.GateTimedOut, o.Status)
	require.EqualValues(t, 60_000, o.WaitedMS)
	b.decide("s1", "g1", "d1", topics.VerdictApprove, "")
	b.Advance(time.Hour)
	require.Zero(t, b.outcomes.Len())
	require.NoError(t, b.Replay())
}

func TestAgentGrantCountsInOtherSessionsUntilItIsRevoked(t *testing.T) {
	b := newFixture(t, gate.Config{})
	b.ask("s1", "g1")
	b.decide("s1", "g1", "d1", topics.VerdictApprove, topics.ScopeAgent)
	require.Equal(t, topics.CauseHuman, b.outcomes.Next().Value.Cause)
	b.ask("s2", "g2")
	require.Equal(t, topics.CauseGrant, b.outcomes.Next().Value.Cause)
	b.grants.Pipe("quay", topics.GateGrant{Action: topics.ActionRevoke, GrantID: "g1", Agent: "quay", By: "ines"})
	b.ask("s2", "g3")
	require.Zero(t, b.outcomes.Len(), "revoked between two calls")
	require.Len(t, b.open(t, "s2"), 1)
}

func TestPurgeCancelsOpenGates(t *testing.T) {
	b := newFixture(t, gate.Config{})
	b.ask("s1", "g1")
	b.ask("s2", "g1")
	b.Advance(time.Second)
	b.controls.Pipe("s1", topics.Control{Action: topics.ActionPurge})
	o := b.outcomes.Next().Value
	require.Equal(t, "s1", o.SessionID)
	require.Equal(t, topics.CausePurged, o.Cause)
	require.Len(t, b.open(t, "s2"), 1)
	b.decide("s1", "g1", "d1", topics.VerdictApprove, "")
}

func TestRefusedRecordsAreDeadLetteredWithTheirReason(t *testing.T) {
	b := newFixture(t, gate.Config{})
	b.decisions.Pipe("s1", topics.GateDecision{
		GateID: "g1", SessionID: "s1", DecisionID: "d0", Verdict: topics.VerdictApprove, OptionID: "none", By: "ines",
	})
	b.ask("s1", "g1")
	held := b.letters.Next()
	require.Contains(t, string(held.Headers[topics.HeaderErrorReason]), "its option is unknown")
	require.Contains(t, string(held.Raw), "d0", "the record that was held, and not the request")
	b.decisions.PipeRaw("s1", []byte(`{"gate_id":"g1"}`))
	b.requests.PipeRaw("s1", []byte(`{`))
	require.Len(t, b.letters.Drain(), 2)
	b.decide("s1", "g1", "d1", topics.VerdictDeny, "")
	require.Equal(t, topics.GateDenied, b.outcomes.Next().Value.Status)
	b.grants.Pipe("pier", topics.GateGrant{Action: topics.ActionGrant, GrantID: "a1", Agent: "quay", Tool: "pay"})
	require.Len(t, processortest.OutRaw(b.Driver, "quay-gate-grant-streams-dlq").Drain(), 1)
}

func TestDecisionWithoutARequestIsDeadLetteredAfterItsHold(t *testing.T) {
	b := newFixture(t, gate.Config{Hold: time.Minute})
	b.decide("s1", "none", "d9", topics.VerdictApprove, "")
	b.Advance(time.Minute - time.Millisecond)
	require.Zero(t, b.letters.Len())
	b.Advance(time.Millisecond)
	given := b.letters.Next()
	require.Equal(t, "gate: its request did not come", string(given.Headers[topics.HeaderErrorReason]))
	require.Equal(t, "quay-gate-decisions", string(given.Headers[topics.HeaderErrorSourceTopic]))
	require.Contains(t, string(given.Raw), "d9")
	b.Advance(48 * time.Hour)
	require.Empty(t, b.table.Keys(), "the row of an idle session is deleted")
}

func TestDamagedRowIsKeptAndAPurgeDeletesIt(t *testing.T) {
	c, err := topics.For("quay")
	require.NoError(t, err)
	graph, err := gate.Graph("quay", gate.Config{})
	require.NoError(t, err)
	grants, err := gate.GrantsGraph("quay", gate.Config{})
	require.NoError(t, err)
	d := processortest.New(t, noon, grants, graph)
	raw := processortest.Table(d, c.GateGroup(), damaged{})
	raw.Put("s1", []byte{0xff})
	letters := processortest.OutRaw(d, "quay-gate-streams-dlq")
	processortest.In(d, c.GateDecisions).Pipe("s1", topics.GateDecision{
		GateID: "g1", SessionID: "s1", DecisionID: "d1", Verdict: topics.VerdictApprove,
	})
	require.Contains(t, string(letters.Next().Headers[topics.HeaderErrorReason]), "cannot be applied")
	require.Equal(t, []byte{0xff}, raw.Raw("s1"))
	processortest.In(d, c.SessionControl).Pipe("s1", topics.Control{Action: topics.ActionPurge})
	require.Nil(t, raw.Raw("s1"))
}

// damaged writes rows that no codec can decode.
type damaged struct{}

func (damaged) Marshal(raw []byte) ([]byte, error) { return raw, nil }

func (damaged) Unmarshal(raw []byte) codec.Decoded[[]byte] { return codec.Decoded[[]byte]{Value: raw} }

func TestLargeEditsFitIntoRecords(t *testing.T) {
	b := newFixture(t, gate.Config{RecordLimit: 128 << 10})
	for id, size := range map[string]int{"fits": 60_000, "too-large": 70_000} {
		b.requests.Pipe("s1", topics.GateRequest{
			GateID: id, SessionID: "s1", Kind: topics.GateTool, Tool: "write", Args: topics.Raw(`{}`),
			Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictEdit},
		})
		b.decisions.Pipe("s1", topics.GateDecision{
			GateID: id, SessionID: "s1", DecisionID: id, Verdict: topics.VerdictApprove,
			EditedArgs: topics.Raw(`{"x":"` + strings.Repeat("x", size) + `"}`),
		})
	}
	require.Equal(t, "fits", b.outcomes.Next().Value.GateID)
	require.Contains(t, string(b.letters.Next().Headers[topics.HeaderErrorReason]), "does not fit into a record")
}

func TestInspectReturnsOpenGates(t *testing.T) {
	raw, err := gaterow.Table.Marshal(&gaterow.State{
		Version: 1, Open: []*gaterow.Gate{{Id: "g2"}}, Closed: []*gaterow.Gate{{Id: "g1", Outcome: &gaterow.Outcome{Status: "denied"}}},
	})
	require.NoError(t, err)
	table := tableOf{"s1": gaterow.Table.Codec().Unmarshal(raw), "s2": "text"}
	views, err := gate.Inspect(table, "s1")
	require.NoError(t, err)
	require.Len(t, views, 1)
	require.Equal(t, "g2", views[0].GateID)
	views, err = gate.Inspect(table, "none")
	require.NoError(t, err)
	require.Empty(t, views)
	_, err = gate.Inspect(table, "s2")
	require.Error(t, err)
	_, err = gate.Inspect(table, "")
	require.ErrorContains(t, err, "no such partition")
}

type recorder []string

func (r *recorder) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, out := range records {
		*r = append(*r, fmt.Sprintf("%s %s %s %s", out.Topic, out.Key, out.Headers[topics.HeaderID], out.Value))
	}
	return nil
}

func TestDecisionsAndRevocationsArePublished(t *testing.T) {
	var to recorder
	ctx := context.Background()
	require.NoError(t, gate.Decide(ctx, &to, "quay", topics.GateDecision{
		GateID: "g1", SessionID: "s1", DecisionID: "d1", Verdict: topics.VerdictDeny, By: "ines",
	}))
	require.NoError(t, gate.RevokeForSession(ctx, &to, "quay", "s1", "g1", "ines"))
	require.NoError(t, gate.RevokeForAgent(ctx, &to, "quay", "g1", "ines"))
	require.Equal(t, recorder{
		`quay-gate-decisions s1 d1 {"gate_id":"g1","session_id":"s1","decision_id":"d1","verdict":"deny","by":"ines"}`,
		`quay-gate-decisions s1 g1/revoke {"gate_id":"g1","session_id":"s1","decision_id":"g1/revoke","verdict":"revoke","by":"ines"}`,
		`quay-gate-grants quay g1/revoke {"action":"revoke","grant_id":"g1","agent":"quay","by":"ines"}`,
	}, to)
	require.Error(t, gate.Decide(ctx, &to, " ", topics.GateDecision{}))
	require.Error(t, gate.RevokeForAgent(ctx, &to, " ", "g1", "ines"))
}
