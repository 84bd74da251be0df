package peer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-peer-tasks" for processors.New: the tasks that the agent delegates to peers, and those that
// peers delegate to it, in one row per session. It returns an error if the name of an agent is
// invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	b, err := newBinding(agent, c)
	if err != nil {
		return nil, err
	}
	own := b.agents[0].Catalog
	inputs := []processors.Source{
		processors.Input(own.PeerCommands, b.onCommand, processors.Confidential[topics.PeerCommand]()), // it may contain a token
		processors.Input(own.PeerReceipts, b.onReceipt, processors.Confidential[topics.Receipt]()),
	}
	outputs := []goka.Edge{
		output(own.PeerAttempts), output(own.PeerCommands), output(own.PeerReplies), output(own.PeerCallbacks),
		output(b.audit.PeerEvents),
	}
	for _, a := range b.agents {
		inputs = append(inputs, a.inputs(b.config.Gates)...)
		outputs = append(outputs, output(a.ToolUseResult), output(a.MessageInput), output(a.SessionControl))
		if b.config.Gates {
			outputs = append(outputs, output(a.GateRequests), output(a.GateDecisions))
		}
	}
	edges := processors.Edges(own.PeerTasksGroup(), inputs...)
	edges = append(edges, goka.Persist(timed.Of(peerrow.Table, b.onDeadline)))
	return goka.DefineGroup(own.PeerTasksGroup(), append(edges, outputs...)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition apply to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	config Config
	agents []agent // that of the group first
	audit  topics.Catalog
}

// agent is an agent of the instance, whose records b handles.
type agent struct {
	topics.Catalog
	b *binding
}

func newBinding(name string, c Config) (*binding, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	c.Agents = append([]string{name}, c.Agents...)
	b := &binding{config: c}
	for _, other := range c.Agents {
		catalog, err := topics.For(other)
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		if slices.ContainsFunc(b.agents, func(a agent) bool { return a.Agent == other }) {
			return nil, fmt.Errorf("%w: Agents has %q twice, or it is the agent of the group", ErrConfig, other)
		}
		b.agents = append(b.agents, agent{catalog, b})
	}
	var err error
	if b.audit, err = topics.For(cmp.Or(c.AuditAgent, name)); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return b, nil
}

// inputs are the topics of the agent's turn, and of its gates.
func (a agent) inputs(gates bool) []processors.Source {
	in := []processors.Source{
		processors.Input(a.ToolUse, a.onCall),
		processors.Input(a.MessageOutput, a.onOutput, processors.Confidential[topics.Output]()), // it may contain a bearer token
		processors.Input(a.SessionControl, a.onControl),
	}
	if gates {
		in = append(in, processors.Input(a.GateRequests, a.onGate), processors.Input(a.GateOutcomes, a.onGateEnd))
	}
	return in
}

func (b *binding) onCommand(c *processors.Context, in codec.Decoded[topics.PeerCommand]) error {
	return b.apply(c, commanded{recordOf(c, b.agents[0].Agent, in.Raw), in.Value})
}

func (b *binding) onReceipt(c *processors.Context, in codec.Decoded[topics.Receipt]) error {
	return b.apply(c, receipted{recordOf(c, b.agents[0].Agent, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{c.Key()})
}

func (a agent) onCall(c *processors.Context, in codec.Decoded[topics.ToolUseItem]) error {
	return a.b.apply(c, called{recordOf(c, a.Agent, in.Raw), in.Value})
}

func (a agent) onOutput(c *processors.Context, in codec.Decoded[topics.Output]) error {
	return a.b.apply(c, outputArrived{recordOf(c, a.Agent, in.Raw), in.Value})
}

func (a agent) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return a.b.apply(c, controlled{recordOf(c, a.Agent, in.Raw), in.Value})
}

func (a agent) onGate(c *processors.Context, in codec.Decoded[topics.GateRequest]) error {
	return a.b.apply(c, gateAsked{recordOf(c, a.Agent, in.Raw), in.Value})
}

func (a agent) onGateEnd(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	return a.b.apply(c, gateEnded{recordOf(c, a.Agent, in.Raw), in.Value})
}

// recordOf describes a record. Other programs may write any header, so a turntable.id that no row can hold counts as absent.
func recordOf(c *processors.Context, agent string, raw []byte) *record {
	return &record{Session: c.Key(), ID: c.CauseID(), Agent: agent, At: c.Timestamp(), Value: raw}
}

// apply applies an event to the row of its session. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered; a purge deletes it.
func (b *binding) apply(c *processors.Context, e event) error {
	state, err := peerrow.Table.Of(c.Value())
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
	out := apply(state, e, c.Now(), config)
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
	own := b.agents[0].Catalog
	switch v := e.Value.(type) {
	case attemptAsked:
		return processors.EmitWithID(c, own.PeerAttempts, c.Key(), topics.Delivery(v), e.ID)
	case asked:
		return processors.EmitWithID(c, own.PeerCommands, cmp.Or(e.Key, c.Key()), topics.PeerCommand(v), e.ID)
	case replySent:
		return processors.EmitWithID(c, own.PeerReplies, c.Key(), topics.PeerReply(v), e.ID)
	case callbackAsked:
		return processors.EmitWithID(c, own.PeerCallbacks, c.Key(), topics.Output(v), e.ID)
	case audited:
		return processors.EmitWithID(c, b.audit.PeerEvents, v.InstanceID, topics.PeerAudit(v), e.ID)
	case toolAnswered:
		return emitOf(b, c, v.Agent, e.ID, v.Result, func(a agent) topics.Topic[topics.ToolUseResult] { return a.ToolUseResult })
	case messageSent:
		return emitOf(b, c, v.Agent, e.ID, v.Message, func(a agent) topics.Topic[topics.Message] { return a.MessageInput })
	case turnCancelled:
		return emitOf(b, c, v.Agent, e.ID, v.Control, func(a agent) topics.Topic[topics.Control] { return a.SessionControl })
	case gateRequested:
		return emitOf(b, c, v.Agent, e.ID, v.Request, func(a agent) topics.Topic[topics.GateRequest] { return a.GateRequests })
	case gateDecided:
		return emitOf(b, c, v.Agent, e.ID, v.Decision, func(a agent) topics.Topic[topics.GateDecision] { return a.GateDecisions })
	default:
		return fmt.Errorf("peer: no topic for %T", e.Value)
	}
}

// emitOf writes a record to a topic of one of the agents. An agent that is no longer configured gets no record: the task that
// it belongs to ends at its deadline.
func emitOf[T any](b *binding, c *processors.Context, name, id string, value T, topic func(agent) topics.Topic[T]) error {
	i := slices.IndexFunc(b.agents, func(a agent) bool { return a.Agent == name })
	if i < 0 {
		c.Logger().Warn("a task is of an agent that is not in Config.Agents; it ends at its deadline")
		return nil
	}
	return processors.EmitWithID(c, topic(b.agents[i]), c.Key(), value, id)
}
