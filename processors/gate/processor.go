package gate

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-gate-streams" for processors.New: the gates of an agent, in one row per session. It looks
// up standing approvals in the table of GrantsGraph, which must run too, in this process or in another. It returns an error
// if the agent's name is invalid, or one that wraps ErrOption if an option is out of range.
func Graph(agent string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, rules, err := configure(agent, opts)
	if err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, rules: rules}
	edges := processors.Edges(catalog.GateGroup(),
		processors.Input(catalog.GateRequests, b.onRequest),
		processors.Input(catalog.GateDecisions, b.onDecision),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	if rules.Channels {
		edges = append(edges, output(catalog.ChannelMessages))
	}
	return goka.DefineGroup(catalog.GateGroup(), append(edges,
		goka.Persist(rows.Timed[*State]{Codec: TableCodec(), Due: b.onDeadline}),
		goka.Lookup(catalog.GateGrantTable(), GrantCodec()),
		output(catalog.GateOutcomes), output(catalog.GateDecisions), output(catalog.GateGrants),
	)...), nil
}

func configure(agent string, opts []Option) (topics.Catalog, Rules, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, Rules{}, fmt.Errorf("gate: %w", err)
	}
	rules, err := rulesOf(agent, opts)
	return catalog, rules, err
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition Apply to Goka: it decodes, calls Apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	rules  Rules
}

func (b *binding) onRequest(c *processors.Context, in codec.Decoded[topics.GateRequest]) error {
	return b.apply(c, Requested{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDecision(c *processors.Context, in codec.Decoded[topics.GateDecision]) error {
	return b.apply(c, Decided{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return b.apply(c, Controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, DeadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *Record {
	return &Record{
		Session: c.Key(), At: c.Timestamp(), Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), Value: raw,
	}
}

// apply applies an event to the row of its session. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered; a purge deletes it.
func (b *binding) apply(c *processors.Context, e Event) error {
	state, err := StateOf(c.Value())
	if errors.Is(err, ErrRowVersion) {
		return err
	}
	if err != nil {
		if control, ok := e.(Controlled); ok && control.Control.Action == topics.ActionPurge && !control.tombstone() {
			return c.Delete()
		}
		return c.DeadLetter(reasonBroken)
	}
	rules := b.rules
	rules.RecordLimit = min(rules.RecordLimit, max(c.MaxRecordBytes(), minRecord))
	out := Apply(state, e, b.standing(c), c.Now(), rules)
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
func (b *binding) standing(c *processors.Context) Standing {
	return func(agent string) *Grants {
		grants, err := GrantsOf(c.Lookup(b.topics.GateGrantTable(), agent))
		if err != nil {
			return nil
		}
		return grants
	}
}

// perform writes the record of an effect.
func (b *binding) perform(c *processors.Context, effect Effect) error {
	if letter, ok := effect.(DeadLetter); ok {
		if letter.Held == nil {
			return c.DeadLetter(letter.Reason)
		}
		h := letter.Held
		return c.DeadLetterOther(processors.Letter{
			Topic: h.Topic, Partition: h.Partition, Offset: h.Offset, Key: c.Key(), Value: h.Value, Reason: letter.Reason,
		})
	}
	e := effect.(Emit)
	switch v := e.Value.(type) {
	case GateEnded:
		return processors.EmitWithID(c, b.topics.GateOutcomes, e.Key, topics.GateOutcome(v), e.ID)
	case CloseAsked:
		return processors.EmitWithID(c, b.topics.GateDecisions, e.Key, topics.GateDecision(v), e.ID)
	case DecisionResolved:
		return processors.EmitWithID(c, b.topics.GateDecisions, e.Key, topics.GateDecision(v), e.ID)
	case MessageSent:
		return processors.EmitWithID(c, b.topics.ChannelMessages, e.Key, topics.Output(v), e.ID)
	case GrantGiven:
		return processors.EmitWithID(c, b.topics.GateGrants, e.Key, topics.GateGrant(v), e.ID)
	default:
		return fmt.Errorf("gate: no topic for %T", e.Value)
	}
}
