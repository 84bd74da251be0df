package cost

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
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
	b := &sessions{topics: catalog, config: &c}
	edges := processors.Edges(catalog.SessionCostsGroup(), processors.Input(catalog.ModelCosts, b.onCost))
	return goka.DefineGroup(catalog.SessionCostsGroup(), append(edges,
		goka.Persist(timed.Of(costrow.SessionTable, func(c *processors.Context) error { return b.apply(c, nil) })),
		goka.Output(catalog.SessionCost.Stream(), catalog.SessionCost.Codec()),
		goka.Output(catalog.ScopeCosts.Stream(), catalog.ScopeCosts.Codec()),
	)...), nil
}

// SpendingGraph returns the group "{agent}-spending-totals" for processors.New: what the model calls of each user and tenant
// have cost. Give it the Config of Graph. Its errors are those of Graph.
func SpendingGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	b := &scopes{topics: catalog, config: &c}
	edges := processors.Edges(catalog.SpendingGroup(), processors.Input(catalog.ScopeCosts, b.onCost))
	return goka.DefineGroup(catalog.SpendingGroup(), append(edges,
		goka.Persist(timed.Of(costrow.ScopeTable, func(c *processors.Context) error { return b.apply(c, nil) })),
		goka.Output(catalog.Spending.Stream(), catalog.Spending.Codec()),
	)...), nil
}

// configure completes c and returns the catalog of an agent.
func configure(agent string, c *Config) (topics.Catalog, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, fmt.Errorf("cost: %w", err)
	}
	return catalog, c.complete()
}

// sessions connects applySession to Goka.
type sessions struct {
	topics topics.Catalog
	config *Config
}

func (b *sessions) onCost(c *processors.Context, in codec.Decoded[topics.ModelCost]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	return b.apply(c, &record{ID: c.CauseID(), Value: in.Value})
}

// apply applies a record, or a deadline, to the row of a session. A row with a newer version stops the processor. A row that
// cannot be decoded is left unchanged and the record is dead-lettered.
func (b *sessions) apply(c *processors.Context, r *record) error {
	row, err := costrow.SessionTable.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out := applySession(row, c.Key(), r, c.Now(), b.config)
	if out.Reason != "" {
		return c.DeadLetter(out.Reason)
	}
	if out.Cost != nil {
		if err := processors.EmitWithID(c, b.topics.SessionCost, c.Key(), *out.Cost, out.ID); err != nil {
			return err
		}
	}
	for _, s := range out.Shares {
		if err := processors.EmitWithID(c, b.topics.ScopeCosts, s.Cost.Scope, s.Cost, s.ID); err != nil {
			return err
		}
	}
	if out.Row == nil {
		return nil
	}
	return c.SetValue(out.Row)
}

// scopes connects applyScope to Goka.
type scopes struct {
	topics topics.Catalog
	config *Config
}

func (b *scopes) onCost(c *processors.Context, in codec.Decoded[topics.ModelCost]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	return b.apply(c, &record{ID: c.CauseID(), Value: in.Value})
}

// apply applies a record, or a deadline, to the row of a scope, as sessions.apply does to that of a session.
func (b *scopes) apply(c *processors.Context, r *record) error {
	row, err := costrow.ScopeTable.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out := applyScope(row, c.Key(), r, c.Now(), b.config)
	if out.Reason != "" {
		return c.DeadLetter(out.Reason)
	}
	if out.Spending != nil {
		if err := processors.EmitWithID(c, b.topics.Spending, c.Key(), *out.Spending, out.ID); err != nil {
			return err
		}
	}
	if out.Row == nil {
		return nil
	}
	return c.SetValue(out.Row)
}
