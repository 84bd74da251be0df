package cost

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-session-costs" for processors.New: what the model calls of each session have cost. Run the
// group of SpendingGraph too, in this process or in another, if users or tenants have budgets. It returns an error if the
// agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*costrow.SessionTotals, *record]{
		Table: costrow.SessionTable, Broken: reasonBroken,
		Apply: func(x *processors.Context, row *costrow.SessionTotals, r *record) (sessionOutcome, error) {
			return applySession(row, x.Key(), r, x.Now(), catalog, &c), nil
		},
	}
	return m.Graph(catalog.SessionCostsGroup(), []processors.Source{machine.Input(m, catalog.ModelCosts, newRecord)},
		machine.Output(catalog.SessionCost), machine.Output(catalog.ScopeCosts)), nil
}

// SpendingGraph returns the group "{agent}-spending-totals" for processors.New: what the model calls of each user and tenant
// have cost. Give it the Config of Graph. Its errors are those of Graph.
func SpendingGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*costrow.ScopeTotals, *record]{
		Table: costrow.ScopeTable, Broken: reasonBroken,
		Apply: func(x *processors.Context, row *costrow.ScopeTotals, r *record) (scopeOutcome, error) {
			return applyScope(row, x.Key(), r, x.Now(), catalog, &c), nil
		},
	}
	return m.Graph(catalog.SpendingGroup(), []processors.Source{machine.Input(m, catalog.ScopeCosts, newRecord)},
		machine.Output(catalog.Spending)), nil
}

func newRecord(r *machine.Record, m topics.ModelCost) *record { return &record{r, m} }

// configure completes c and returns the catalog of an agent.
func configure(agent string, c *Config) (topics.Catalog, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, fmt.Errorf("cost: %w", err)
	}
	return catalog, c.complete()
}
