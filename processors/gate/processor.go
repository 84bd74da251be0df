package gate

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-gate-streams" for processors.New: the gates of an agent, in one row per session. It looks
// up standing approvals in the table of GrantsGraph, which must run too, in this process or in another. It returns an error
// if the agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, cfg Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &cfg)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*gaterow.State, event]{
		Table: gaterow.Table, Broken: reasonBroken, Purges: purges, Due: func(read time.Time) event { return deadlineCame{read} },
		Apply: func(c *processors.Context, row *gaterow.State, e event) (machine.Outcome[*gaterow.State], error) {
			config := cfg
			config.RecordLimit = min(config.RecordLimit, max(c.MaxRecordBytes(), minRecord))
			return apply(row, c.Key(), e, standing(c, catalog), c.Now(), catalog, config), nil
		},
	}
	inputs := []processors.Source{
		machine.Input(m, catalog.GateRequests, func(r *machine.Record, v topics.GateRequest) event { return requested{r, v} }),
		machine.Input(m, catalog.GateDecisions, func(r *machine.Record, v topics.GateDecision) event { return decided{r, v} }),
		machine.Input(m, catalog.SessionControl, func(r *machine.Record, v topics.Control) event { return controlled{r, v} }),
	}
	more := []goka.Edge{
		goka.Lookup(catalog.GateGrantTable(), gaterow.GrantTable.Codec()),
		machine.Output(catalog.GateOutcomes), machine.Output(catalog.GateDecisions), machine.Output(catalog.GateGrants),
	}
	if cfg.Channels {
		more = append(more, machine.Output(catalog.ChannelMessages))
	}
	return m.Graph(catalog.GateGroup(), inputs, more...), nil
}

// configure completes c and returns the catalog of an agent.
func configure(agent string, c *Config) (topics.Catalog, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, fmt.Errorf("gate: %w", err)
	}
	return catalog, c.complete()
}

// purges reports whether an event deletes a row that cannot be decoded.
func purges(e event) bool {
	control, ok := e.(controlled)
	return ok && control.Control.Action == topics.ActionPurge && !control.Tombstone()
}

// standing looks up an agent's grants in the table of GrantsGraph. That table is stale by some milliseconds, or for as long
// as that group does not run. A person is then asked once more, or a revoked grant counts for one more call. A row that
// cannot be decoded grants nothing.
func standing(c *processors.Context, catalog topics.Catalog) grantsOf {
	return func(agent string) *gaterow.Grants {
		grants, err := gaterow.GrantTable.Of(c.Lookup(catalog.GateGrantTable(), agent))
		if err != nil {
			return nil
		}
		return grants
	}
}
