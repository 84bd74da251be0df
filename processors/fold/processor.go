package fold

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
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
	b := &binding{catalog, c}
	inputs := []processors.Source{
		processors.Input(catalog.AgentEvents, b.onEvent,
			processors.KeyedBy(func(e topics.AgentEvent) *string { return &e.SessionID })),
		processors.Input(catalog.SessionControl, b.onControl),
	}
	if c.Gates {
		inputs = append(inputs, processors.Input(catalog.GateOutcomes, b.onOutcome,
			processors.KeyedBy(func(o topics.GateOutcome) *string { return &o.SessionID })))
	}
	edges := processors.Edges(catalog.FoldGroup(), inputs...)
	edges = append(edges, goka.Persist(timed.Of(foldrow.Table, b.onDeadline)), output(catalog.BatchMessages))
	if c.Gates {
		edges = append(edges, output(catalog.GateRequests))
	}
	if c.ThinkResponses {
		edges = append(edges, output(catalog.ThinkRequestResponse), output(catalog.ThinkDLQ))
	}
	return goka.DefineGroup(catalog.FoldGroup(), edges...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the transition to Goka.
type binding struct {
	topics topics.Catalog
	config Config
}

func (b *binding) onEvent(c *processors.Context, in codec.Decoded[topics.AgentEvent]) error {
	return b.apply(c, eventReceived{c.Key(), in.Tombstone(), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return b.apply(c, controlReceived{c.Key(), c.CauseID(), in.Tombstone(), in.Value})
}

func (b *binding) onOutcome(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	return b.apply(c, outcomeReceived{c.Key(), in.Tombstone(), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineReached{c.Key()})
}

// apply applies an input to its session's row. A row of a newer format stops the processor: overwriting it would lose
// data. If the bytes of the row are damaged, a purge deletes it; any other record is dead-lettered and the row is not changed.
func (b *binding) apply(c *processors.Context, in input) error {
	if control, ok := in.(controlReceived); ok && control.purges() {
		return b.purge(c, in)
	}
	return b.applyTo(c, in)
}

func (b *binding) applyTo(c *processors.Context, in input) error {
	row, err := foldrow.Table.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out, err := b.outcome(c, row, in)
	if err != nil {
		return err
	}
	return b.perform(c, out)
}

// outcome applies an input to a row.
func (b *binding) outcome(c *processors.Context, row *foldrow.Row, in input) (outcome, error) {
	parts, config := parts(c.Part), b.config
	if limit := c.MaxRecordBytes(); limit > 0 {
		config.RecordLimit = min(config.RecordLimit, limit) // the producer rejects larger records at every retry
	}
	if !c.HasParts() {
		parts = nil
	}
	return apply(row, in, parts, c.Now(), config)
}

func (b *binding) perform(c *processors.Context, out outcome) error {
	for _, effect := range out.Effects {
		if err := b.run(c, effect); err != nil {
			return err
		}
	}
	switch {
	case !out.Changed:
		return nil
	case out.Row == nil:
		return c.Delete()
	default:
		return c.SetValue(out.Row)
	}
}

func (b *binding) run(c *processors.Context, effect effect) error {
	switch e := effect.(type) {
	case emit:
		return b.emit(c, e)
	case deadLetter:
		return c.DeadLetter(e.Reason)
	case partWritten:
		return c.SetPart(e.Number, e.Value)
	case partDeleted:
		return c.DeletePart(e.Number)
	default:
		return fmt.Errorf("fold: unknown effect %T", effect)
	}
}

func (b *binding) emit(c *processors.Context, e emit) error {
	switch v := e.Value.(type) {
	case batchMessage:
		return processors.EmitWithID(c, b.topics.BatchMessages, e.Key, topics.BatchMessage(v), e.ID)
	case thinkResponse:
		return processors.EmitWithID(c, b.topics.ThinkRequestResponse, e.Key, topics.ThinkResponse(v), e.ID)
	case thinkFailure:
		return processors.EmitWithID(c, b.topics.ThinkDLQ, e.Key, topics.ThinkFailure(v), e.ID)
	case gateRequest:
		r := topics.GateRequest(v)
		r.Origin.Agent = b.topics.Agent
		return processors.EmitWithID(c, b.topics.GateRequests, e.Key, r, e.ID)
	default:
		return fmt.Errorf("fold: no topic for %T", e.Value)
	}
}
