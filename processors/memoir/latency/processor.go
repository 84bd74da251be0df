package latency

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
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
	m := &machine.Machine[*latencyrow.ToolLatencies, *measurement]{
		Table: rowFormat, Broken: reasonBroken,
		Apply: func(x *processors.Context, row *latencyrow.ToolLatencies, r *measurement) (outcome, error) {
			return apply(row, x.Key(), r, x.Now(), &c), nil
		},
	}
	return m.Graph(catalog.LatenciesGroup(), []processors.Source{machine.Input(m, catalog.ToolUseLatency,
		func(r *machine.Record, v topics.ToolLatency) *measurement { return &measurement{r, v} })}), nil
}
