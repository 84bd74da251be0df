package cost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// fixture runs both groups without a broker.
type fixture struct {
	*processortest.Driver
	costs    *processortest.Input[topics.ModelCost]
	shares   *processortest.Input[topics.ModelCost]
	sessions *processortest.Output[topics.SessionCost]
	spending *processortest.Output[topics.Spending]
	letters  *processortest.Output[[]byte]
	table    *processortest.GroupTable[*costrow.SessionTotals]
	scopes   *processortest.GroupTable[*costrow.ScopeTotals]
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c, err := topics.For("quay")
	require.NoError(t, err)
	sessions, err := cost.Graph("quay", cost.Config{})
	require.NoError(t, err)
	spending, err := cost.SpendingGraph("quay", cost.Config{})
	require.NoError(t, err)
	d := processortest.New(t, noon, sessions, spending)
	return &fixture{
		Driver: d, costs: processortest.In(d, c.ModelCosts), shares: processortest.In(d, c.ScopeCosts),
		sessions: processortest.Out(d, c.SessionCost), spending: processortest.Out(d, c.Spending),
		letters: processortest.OutRaw(d, "quay-session-costs-dlq"),
		table:   processortest.Table(d, c.SessionCostsGroup(), costrow.SessionTable.Codec()),
		scopes:  processortest.Table(d, c.SpendingGroup(), costrow.ScopeTable.Codec()),
	}
}

func (f *fixture) call(session, id string, dollars float64) {
	user := "mira"
	f.costs.Pipe(session, topics.ModelCost{
		SessionID: &session, UserID: &user, LLMCalls: 1, InputTokens: 10, OutputTokens: 2, CostUSD: &dollars,
		AtMS: f.Now().UnixMilli(),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte(id)}))
}

func TestCostsOfSessionsAndTheirUserAgree(t *testing.T) {
	f := newFixture(t)
	f.call("s1", "a", 0.1)
	f.call("s2", "b", 0.2)
	f.Advance(24 * time.Hour)
	f.call("s1", "c", 0.3)
	f.call("s1", "a", 0.1) // the turn wrote it again within the window
	require.Equal(t, `{"session_id":"s1","user_id":"mira","llm_calls":1,"total_input_tokens":10,"total_output_tokens":2,`+
		`"estimated_cost_usd":0.1,"timestamp":"2026-09-21T12:00:00Z"}`, string(f.sessions.Next().Raw))
	require.InDelta(t, 0.2, *f.sessions.Next().Value.EstimatedCostUSD, 0)
	last := f.sessions.Next()
	require.Equal(t, "s1", last.Key)
	require.InDelta(t, 0.4, *last.Value.EstimatedCostUSD, 0)
	require.Len(t, last.ID(), 32)

	require.Equal(t, 3, f.spending.Len())
	f.spending.Next()
	require.InDelta(t, 0.3, f.spending.Next().Value.DayCostUSD, 0)
	s := f.spending.Next()
	require.Equal(t, "user/mira", s.Key)
	require.Equal(t, `{"scope":"user/mira","llm_calls":3,"input_tokens":30,"output_tokens":6,"cost_usd":0.6,"day":"2026-09-22",`+
		`"day_cost_usd":0.3,"month":"2026-09","month_cost_usd":0.6,"timestamp":"2026-09-22T12:00:00Z"}`, string(s.Raw))
	require.NoError(t, f.Replay())
}

func TestRecordsThatCannotBeAddedAreDeadLettered(t *testing.T) {
	f := newFixture(t)
	f.call("s1", "a", -1)
	require.Equal(t, "cost: a number is negative", string(f.letters.Next().Headers["error.reason"]))
	f.costs.PipeRaw("s1", nil)
	require.Equal(t, "cost: tombstone", string(f.letters.Next().Headers["error.reason"]))
	f.costs.PipeRaw("s1", []byte("{"))
	f.letters.Next()
	require.Empty(t, f.table.Keys())

	letters := processortest.OutRaw(f.Driver, "quay-spending-totals-dlq")
	f.shares.Pipe("user/mira", topics.ModelCost{Scope: "user/ines"})
	require.Equal(t, "cost: its scope is not its key", string(letters.Next().Headers["error.reason"]))
	f.shares.PipeRaw("user/mira", nil)
	require.Equal(t, "cost: tombstone", string(letters.Next().Headers["error.reason"]))
	require.Empty(t, f.scopes.Keys())
}

func TestIdleRowsForgetIDsAndKeepTheirSums(t *testing.T) {
	f := newFixture(t)
	f.call("s1", "a", 0.5)
	f.Advance(25 * time.Hour)
	row, ok := f.table.Get("s1")
	require.True(t, ok)
	require.Empty(t, row.Seen)
	require.EqualValues(t, 1, row.LlmCalls)
	scope, ok := f.scopes.Get("user/mira")
	require.True(t, ok)
	require.Empty(t, scope.Seen)
	require.Less(t, len(f.table.Raw("s1")), 64, "bytes of an idle session")
	f.call("s1", "b", 0.25)
	f.sessions.Next()
	require.InDelta(t, 0.75, *f.sessions.Next().Value.EstimatedCostUSD, 0)
	require.Len(t, f.spending.Drain(), 2)
}

func TestConfigIsChecked(t *testing.T) {
	for _, build := range []func(string, cost.Config) (*goka.GroupGraph, error){cost.Graph, cost.SpendingGraph} {
		for want, c := range map[string]cost.Config{
			"RememberFor is -1ns": {RememberFor: -1}, "RememberCount is 1000000, want 1 to 10000": {RememberCount: 1e6},
		} {
			_, err := build("quay", c)
			require.ErrorIs(t, err, cost.ErrConfig)
			require.ErrorContains(t, err, want)
		}
		_, err := build(" ", cost.Config{})
		require.ErrorContains(t, err, "cost: ")
		graph, err := build("quay", cost.Config{RememberFor: time.Minute, RememberCount: 10})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(graph.Group()), "quay-"))
	}
}
