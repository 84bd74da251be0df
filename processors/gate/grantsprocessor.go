package gate

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// GrantsGraph returns the group "{agent}-gate-grant-streams" for processors.New: the standing approvals, in one row per
// agent. Give it the Config of Graph. Its errors are those of Graph.
func GrantsGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*gaterow.Grants, *grantChange]{
		Table: gaterow.GrantTable, Broken: reasonBroken,
		Apply: func(x *processors.Context, row *gaterow.Grants, e *grantChange) (machine.Outcome[*gaterow.Grants], error) {
			return applyGrant(row, x.Key(), e, x.Now(), c), nil
		},
	}
	return m.Graph(catalog.GateGrantGroup(), []processors.Source{
		machine.Input(m, catalog.GateGrants, func(r *machine.Record, g topics.GateGrant) *grantChange { return &grantChange{r, g} }),
	}), nil
}
