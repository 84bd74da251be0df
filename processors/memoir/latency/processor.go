package latency

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-latencies" for processors.New: the latencies of an agent's tools, in one row per tool. It
// writes no topic but its table, which Follow reads. It returns an error if the agent's name is invalid, or one that wraps
// ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	b := &binding{&c}
	edges := processors.Edges(catalog.LatenciesGroup(), processors.Input(catalog.ToolUseLatency, b.onLatency))
	return goka.DefineGroup(catalog.LatenciesGroup(), append(edges, goka.Persist(timed.Of(rowFormat, func(c *processors.Context) error { return b.apply(c, nil) })))...), nil
}

// binding connects the pure transition apply to Goka.
type binding struct{ config *Config }

func (b *binding) onLatency(c *processors.Context, in codec.Decoded[topics.ToolLatency]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	return b.apply(c, &measurement{ID: c.CauseID(), Value: in.Value})
}

// apply applies a record, or a deadline, to the row of a tool. A row with a newer version stops the processor. A row that
// cannot be decoded is left unchanged and the record is dead-lettered.
func (b *binding) apply(c *processors.Context, record *measurement) error {
	row, err := rowFormat.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out := apply(row, c.Key(), record, c.Now(), b.config)
	switch {
	case out.Reason != "":
		return c.DeadLetter(out.Reason)
	case !out.Changed:
		return nil
	case out.Row == nil:
		return c.Delete()
	default:
		return c.SetValue(out.Row)
	}
}
