package gate

import (
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// GrantsGraph returns the group "{agent}-gate-grant-streams" for processors.New: the standing approvals, in one row per
// agent. Give it the Config of Graph. Its errors are those of Graph.
func GrantsGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	b := &grantsBinding{c}
	edges := processors.Edges(catalog.GateGrantGroup(), processors.Input(catalog.GateGrants, b.onGrant))
	return goka.DefineGroup(catalog.GateGrantGroup(), append(edges,
		goka.Persist(timed.Of(gaterow.GrantTable, func(c *processors.Context) error { return b.apply(c, nil) })),
	)...), nil
}

// grantsBinding connects applyGrant to Goka.
type grantsBinding struct{ config Config }

func (b *grantsBinding) onGrant(c *processors.Context, in codec.Decoded[topics.GateGrant]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	return b.apply(c, &in.Value)
}

// apply applies a record, or a deadline, to the row of an agent. A row with a newer version stops the processor. A row
// that cannot be decoded grants nothing; it is left unchanged and the record is dead-lettered.
func (b *grantsBinding) apply(c *processors.Context, record *topics.GateGrant) error {
	row, err := gaterow.GrantTable.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out := applyGrant(row, c.Key(), record, c.Now(), b.config)
	switch {
	case out.Reason != "":
		return c.DeadLetter(out.Reason)
	case !out.Changed:
		return nil
	case out.Grants == nil:
		return c.Delete()
	default:
		return c.SetValue(out.Grants)
	}
}
