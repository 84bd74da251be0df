package delegation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-delegations" for processors.New: the tasks that the agent delegates and does not wait for,
// in one row per session. It also returns the outputs of tasks that other agents have delegated to the agent. It returns an
// error if the name of an agent is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	b, err := newBinding(agent, c)
	if err != nil {
		return nil, err
	}
	own := b.own
	inputs := []processors.Source{
		processors.Input(own.ToolUse, b.onCall),
		processors.Input(own.DelegationReplies, b.onReply, processors.Confidential[topics.DelegationReply]()), // it has results
		processors.Input(own.MessageOutput, b.onOutput, processors.Confidential[topics.Output]()),             // it may contain a bearer token
		processors.Input(own.SessionControl, b.onControl),
	}
	outputs := []goka.Edge{
		output(own.ToolUseResult), output(own.MessageInput), output(own.DelegationReplies), output(own.DelegationStatus),
	}
	if b.config.Peers {
		inputs = append(inputs, processors.Input(own.PeerReplies, b.onPeerReply, processors.Confidential[topics.PeerReply]()))
		outputs = append(outputs, output(own.PeerCommands))
	}
	for _, a := range b.agents {
		outputs = append(outputs, output(a.SessionControl))
		if a.Agent != agent {
			outputs = append(outputs, output(a.MessageInput), output(a.DelegationReplies))
		}
	}
	edges := processors.Edges(own.DelegationsGroup(), inputs...)
	edges = append(edges, goka.Persist(timed.Of(delegationrow.Table, b.onDeadline)))
	return goka.DefineGroup(own.DelegationsGroup(), append(edges, outputs...)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition apply to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	config Config
	own    topics.Catalog
	agents []topics.Catalog
}

func newBinding(name string, c Config) (*binding, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	b := &binding{config: c}
	var err error
	if b.own, err = topics.For(name); err != nil {
		return nil, fmt.Errorf("delegation: %w", err)
	}
	for _, other := range c.Agents {
		catalog, err := topics.For(other)
		if err != nil {
			return nil, fmt.Errorf("delegation: %w", err)
		}
		b.agents = append(b.agents, catalog)
	}
	return b, nil
}

func (b *binding) onCall(c *processors.Context, in codec.Decoded[topics.ToolUseItem]) error {
	return b.apply(c, called{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onReply(c *processors.Context, in codec.Decoded[topics.DelegationReply]) error {
	return b.apply(c, replied{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onOutput(c *processors.Context, in codec.Decoded[topics.Output]) error {
	return b.apply(c, outputArrived{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return b.apply(c, controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onPeerReply(c *processors.Context, in codec.Decoded[topics.PeerReply]) error {
	return b.apply(c, peerReplied{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *record {
	return &record{Session: c.Key(), ID: c.CauseID(), At: c.Timestamp(), Value: raw}
}

// apply applies an event to the row of its session. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered; a purge deletes it.
func (b *binding) apply(c *processors.Context, e event) error {
	state, err := delegationrow.Table.Of(c.Value())
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
	out := apply(state, e, b.own.Agent, c.Now(), config)
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

// perform writes the record of an effect.
func (b *binding) perform(c *processors.Context, effect effect) error {
	e, ok := effect.(emit)
	if !ok {
		return c.DeadLetter(effect.(deadLetter).Reason)
	}
	switch v := e.Value.(type) {
	case callAnswered:
		return processors.EmitWithID(c, b.own.ToolUseResult, e.Key, topics.ToolUseResult(v), e.ID)
	case statusWritten:
		return processors.EmitWithID(c, b.own.DelegationStatus, e.Key, topics.Delegation(v), e.ID)
	case callbackSent:
		return processors.EmitWithID(c, b.own.MessageInput, e.Key, topics.Message(v), e.ID)
	case peerAsked:
		if !b.config.Peers {
			c.Logger().Warn("a delegation to a peer is open, but Config.Peers is not set; the peer is not told of its end")
			return nil
		}
		return processors.EmitWithID(c, b.own.PeerCommands, e.Key, topics.PeerCommand(v), e.ID)
	case replySent:
		return emitOf(b, c, v.Agent, e, v.Reply, func(a topics.Catalog) topics.Topic[topics.DelegationReply] { return a.DelegationReplies })
	case taskSent:
		return emitOf(b, c, v.Agent, e, v.Message, func(a topics.Catalog) topics.Topic[topics.Message] { return a.MessageInput })
	case taskCancelled:
		return emitOf(b, c, v.Agent, e, v.Control, func(a topics.Catalog) topics.Topic[topics.Control] { return a.SessionControl })
	default:
		return fmt.Errorf("delegation: no topic for %T", e.Value)
	}
}

// emitOf writes a record to a topic of one of the agents. An agent that is no longer configured gets no record: the delegation
// ends without it, at its deadline at the latest.
func emitOf[T any](b *binding, c *processors.Context, name string, e emit, value T, topic func(topics.Catalog) topics.Topic[T]) error {
	if name == b.own.Agent {
		if _, control := e.Value.(taskCancelled); !control || slices.Contains(b.config.Agents, name) {
			return processors.EmitWithID(c, topic(b.own), e.Key, value, e.ID)
		}
	}
	i := slices.IndexFunc(b.agents, func(a topics.Catalog) bool { return a.Agent == name })
	if i < 0 {
		c.Logger().Warn("a delegation is to an agent that is not given to Config.Agents; the agent is not told of its end")
		return nil
	}
	return processors.EmitWithID(c, topic(b.agents[i]), e.Key, value, e.ID)
}
