package fold

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-fold-streams", which folds an agent's event stream, for processors.New. The catalog for
// processors.WithTopics needs topics.WithEvents. It fails with ErrConfig, and if the agent's
// name is not valid in topic names.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	m := &machine.Machine[*foldrow.Row, input]{
		Table: foldrow.Table, Broken: reasonBroken, Named: partsOf, PurgesAll: true,
		Due: func(read time.Time) input { return deadlineReached{read} },
		Purges: func(in input) bool {
			control, ok := in.(controlReceived)
			return ok && control.purges()
		},
		Apply: func(x *processors.Context, row *foldrow.Row, in input) (machine.Outcome[*foldrow.Row], error) {
			parts, config := parts(x.Part), c
			if limit := x.MaxRecordBytes(); limit > 0 {
				config.RecordLimit = min(config.RecordLimit, limit) // the producer rejects larger records at every retry
			}
			if !x.HasParts() {
				parts = nil
			}
			return apply(row, x.Key(), in, parts, x.Now(), catalog, config)
		},
	}
	inputs := []processors.Source{
		machine.Input(m, catalog.AgentEvents, func(r *machine.Record, v topics.AgentEvent) input { return eventReceived{r, v} },
			processors.KeyedBy(func(e topics.AgentEvent) *string { return &e.SessionID })),
		machine.Input(m, catalog.SessionControl, func(r *machine.Record, v topics.Control) input { return controlReceived{r, v} }),
	}
	outputs := []goka.Edge{machine.Output(catalog.BatchMessages)}
	if c.Gates {
		inputs = append(inputs, machine.Input(m, catalog.GateOutcomes,
			func(r *machine.Record, v topics.GateOutcome) input { return outcomeReceived{r, v} },
			processors.KeyedBy(func(o topics.GateOutcome) *string { return &o.SessionID })))
		outputs = append(outputs, machine.Output(catalog.GateRequests))
	}
	if c.ThinkResponses {
		outputs = append(outputs, machine.Output(catalog.ThinkRequestResponse), machine.Output(catalog.ThinkDLQ))
	}
	return m.Graph(catalog.FoldGroup(), inputs, outputs...), nil
}
