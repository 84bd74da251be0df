package turn

import (
	"math"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// tableOf are spendings by scope. It is a table, too.
type tableOf map[string]topics.Spending

func (t tableOf) of(scope string) (topics.Spending, bool) {
	return t[scope], t[scope].Scope != "unreadable"
}

func (t tableOf) Lookup(_ goka.Table, key string) any {
	v, ok := t[key]
	if !ok {
		return nil
	}
	return codec.Decoded[topics.Spending]{Value: v}
}

func TestUserOrTenantOverBudgetAsksTheModelNoMore(t *testing.T) {
	day, month := "2026-09-21", "2026-09" // of the test's clock
	for name, c := range map[string]struct {
		budgets Budgets
		spent   tableOf
		want    string // "" if the model is asked
	}{
		"nothing spent":         {Budgets{User: Budget{Total: 1}}, tableOf{}, ""},
		"below":                 {Budgets{User: Budget{Total: 1}}, tableOf{"user/mira": {CostUSD: 0.99}}, ""},
		"in all":                {Budgets{User: Budget{Total: 1}}, tableOf{"user/mira": {CostUSD: 1}}, "user mira has spent 1, the limit is 1"},
		"today":                 {Budgets{User: Budget{Day: 1}}, tableOf{"user/mira": {Day: day, DayCostUSD: 2}}, "user mira has spent 2 today, the limit is 1"},
		"another day":           {Budgets{User: Budget{Day: 1}}, tableOf{"user/mira": {Day: "2026-09-20", DayCostUSD: 2}}, ""},
		"this month":            {Budgets{User: Budget{Month: 1}}, tableOf{"user/mira": {Month: month, MonthCostUSD: 2}}, "user mira has spent 2 this month, the limit is 1"},
		"another month":         {Budgets{User: Budget{Month: 1}}, tableOf{"user/mira": {Month: "2026-08", MonthCostUSD: 2}}, ""},
		"tenant":                {Budgets{Tenant: Budget{Total: 1}}, tableOf{"tenant/m": {CostUSD: 3}}, "tenant m has spent 3, the limit is 1"},
		"user of a tenant":      {Budgets{Tenant: Budget{Total: 1}}, tableOf{"user/mira": {CostUSD: 3}}, ""},
		"row cannot be decoded": {Budgets{User: Budget{Total: 1}}, tableOf{"user/mira": {Scope: "unreadable"}}, "the spending of user mira cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, func(r *rules) { r.Costs, r.Budgets, r.Tenants = true, c.budgets, TenantBefore("i") })
			require.Equal(t, day, p.now.UTC().Format("2006-01-02"))
			p.spendings = c.spent
			es := p.send("message-input", message("one"))
			if c.want == "" {
				require.Len(t, emitted[enriched](es), 1)
				return
			}
			require.Empty(t, emitted[enriched](es))
			out := the[answered](t, es)
			require.Equal(t, topics.CodeOverBudget, out.Error.Code)
			require.Contains(t, out.Error.Message, c.want)
		})
	}
}

func TestToolsOfAUserOverBudgetAreNotCalled(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.Costs, r.Budgets = true, Budgets{User: Budget{Total: 1}} })
	spent := tableOf{}
	p.spendings = spent
	asked := p.ask("one")
	spent["user/mira"] = topics.Spending{CostUSD: 1}
	es := p.respond(asked, calling("t1"))
	require.Empty(t, emitted[called](es))
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)
}

func TestSpendingIsLookedUp(t *testing.T) {
	table := tableOf{"user/mira": {CostUSD: 2}}
	spent, ok := lookedUp{table, "quay-spending"}.of("user/mira")
	require.True(t, ok)
	require.Equal(t, 2.0, spent.CostUSD)
	spent, ok = lookedUp{table, "quay-spending"}.of("user/otto")
	require.True(t, ok)
	require.Zero(t, spent)
}

func TestBudgetsAreChecked(t *testing.T) {
	graph, err := Graph(agent, Config{Budgets: Budgets{User: Budget{Day: 1}}})
	require.NoError(t, err)
	require.Len(t, graph.LookupTables(), 1)
	require.Equal(t, agent+"-spending", graph.LookupTables()[0].Topic())
	graph, err = Graph(agent, Config{Costs: true, Latencies: true})
	require.NoError(t, err)
	require.Empty(t, graph.LookupTables())
	for _, b := range []Budgets{{User: Budget{Day: -1}}, {User: Budget{Total: math.NaN()}}, {Tenant: Budget{Day: 1}}} {
		_, err := Graph(agent, Config{Budgets: b})
		require.ErrorIs(t, err, ErrConfig)
	}
	require.Equal(t, "acme", TenantBefore("/")("acme/mira"))
	require.Empty(t, TenantBefore("/")("mira"))
}
