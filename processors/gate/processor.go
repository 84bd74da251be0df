package gate

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-gate-streams" for processors.New: the gates of an agent, in one row per session. It looks
// up standing approvals in the table of GrantsGraph, which must run too, in this process or in another. It returns an error
// if the agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, agent: agent, config: c}
	edges := processors.Edges(catalog.GateGroup(),
		processors.Input(catalog.GateRequests, b.onRequest),
		processors.Input(catalog.GateDecisions, b.onDecision),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	if c.Channels {
		edges = append(edges, output(catalog.ChannelMessages))
	}
	return goka.DefineGroup(catalog.GateGroup(), append(edges,
		goka.Persist(timed.Of(gaterow.Table, b.onDeadline)),
		goka.Lookup(catalog.GateGrantTable(), gaterow.GrantTable.Codec()),
		output(catalog.GateOutcomes), output(catalog.GateDecisions), output(catalog.GateGrants),
	)...), nil
}

// configure completes c and returns the catalog of an agent.
func configure(agent string, c *Config) (topics.Catalog, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, fmt.Errorf("gate: %w", err)
	}
	return catalog, c.complete()
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition apply to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	agent  string
	config Config
}

func (b *binding) onRequest(c *processors.Context, in codec.Decoded[topics.GateRequest]) error {
	return b.apply(c, requested{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDecision(c *processors.Context, in codec.Decoded[topics.GateDecision]) error {
	return b.apply(c, decided{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return b.apply(c, controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *record {
	return &record{
		Session: c.Key(), At: c.Timestamp(), Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), Value: raw,
	}
}

// apply applies an event to the row of its session. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered; a purge deletes it.
func (b *binding) apply(c *processors.Context, e event) error {
	state, err := gaterow.Table.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		if control, ok := e.(controlled); ok && control.Control.Action == topics.ActionPurge && !control.tombstone() {
			return c.Delete()
		}
		return c.DeadLetter(reasonBroken)
	}
	config := b.config
	config.RecordLimit = min(config.RecordLimit, max(c.MaxRecordBytes(), minRecord))
	out := apply(state, e, b.standing(c), c.Now(), b.agent, config)
	for _, effect := range out.Effects {
		if err := b.perform(c, effect); err != nil {
			return err
		}
	}
	switch {
	case !out.Changed:
		return nil
	case out.State == nil:
		return c.Delete()
	default:
		return c.SetValue(out.State)
	}
}

// standing looks up an agent's grants in the table of GrantsGraph. That table is stale by some milliseconds, or for as long
// as that group does not run. A person is then asked once more, or a revoked grant counts for one more call. A row that
// cannot be decoded grants nothing.
func (b *binding) standing(c *processors.Context) grantsOf {
	return func(agent string) *gaterow.Grants {
		grants, err := gaterow.GrantTable.Of(c.Lookup(b.topics.GateGrantTable(), agent))
		if err != nil {
			return nil
		}
		return grants
	}
}

// perform writes the record of an effect.
func (b *binding) perform(c *processors.Context, e effect) error {
	if letter, ok := e.(deadLetter); ok {
		if letter.Held == nil {
			return c.DeadLetter(letter.Reason)
		}
		h := letter.Held
		return c.DeadLetterOther(processors.Letter{
			Topic: h.Topic, Partition: h.Partition, Offset: h.Offset, Key: c.Key(), Value: h.Value, Reason: letter.Reason,
		})
	}
	out := e.(emit)
	switch v := out.Value.(type) {
	case gateEnded:
		return processors.EmitWithID(c, b.topics.GateOutcomes, out.Key, topics.GateOutcome(v), out.ID)
	case closeAsked:
		return processors.EmitWithID(c, b.topics.GateDecisions, out.Key, topics.GateDecision(v), out.ID)
	case decisionResolved:
		return processors.EmitWithID(c, b.topics.GateDecisions, out.Key, topics.GateDecision(v), out.ID)
	case messageSent:
		return processors.EmitWithID(c, b.topics.ChannelMessages, out.Key, topics.Output(v), out.ID)
	case grantGiven:
		return processors.EmitWithID(c, b.topics.GateGrants, out.Key, topics.GateGrant(v), out.ID)
	default:
		return fmt.Errorf("gate: no topic for %T", out.Value)
	}
}
