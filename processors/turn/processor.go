package turn

import (
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group graph of an agent's turns, for processors.New: the inputs, the table and the outputs of the group
// "{agent}-streams". It returns an error if the agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("turn: %w", err)
	}
	if err := c.Complete(); err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, rules: rules{Config: c, Agent: agent}, cache: newStateCache()}
	sources := []processors.Source{
		processors.Input(catalog.MessageInput, b.onMessage,
			processors.KeyedBy(func(m topics.Message) *string { return m.SessionID }),
			processors.Known[topics.Message](b.isOwnToolMessage)),
		processors.Input(catalog.ThinkRequestResponse, b.onThinkResponse),
		processors.Input(catalog.ThinkDLQ, b.onThinkFailure, processors.Repartitioned[topics.ThinkFailure]()),
		processors.Input(catalog.ToolUseResult, b.onToolResult),
		processors.Input(catalog.ToolUseDLQ, b.onToolFailure),
		processors.Input(catalog.ReplyTo, b.onRoute, processors.Confidential[topics.Route]()),
		processors.Input(catalog.SessionControl, b.onControl),
	}
	var more []goka.Edge
	if c.Compaction != nil {
		sources = append(sources, processors.Input(catalog.CompactionResult, b.onCompaction))
		more = append(more, output(catalog.CompactionRequest))
	}
	if c.usesGates() {
		sources = append(sources, processors.Input(catalog.GateOutcomes, b.onGateOutcome))
		more = append(more, output(catalog.GateRequests))
	}
	if c.Gates {
		sources = append(sources, processors.Input(catalog.GateRequests, b.onGateRequest))
	}
	if c.Memoir != nil {
		more = append(more, output(catalog.MemoirLookups), output(catalog.MemoirSessions), output(catalog.SessionEnd),
			output(catalog.ThinkRequestResponse))
	}
	if c.Costs {
		more = append(more, output(catalog.ModelCosts))
	}
	events := output(catalog.AgentEvents)
	if !c.Events {
		events, b.eventsExist = processors.OptionalOutput(catalog.AgentEvents)
	}
	more = append(more, events)
	if c.Latencies {
		more = append(more, output(catalog.ToolUseLatency))
	}
	if c.hasBudgets() {
		more = append(more, goka.Lookup(goka.Table(catalog.Spending.Name()), catalog.Spending.Codec()))
	}
	edges := append(processors.Edges(catalog.Group(), sources...), more...)
	return goka.DefineGroup(catalog.Group(), append(edges,
		goka.Persist(encodedRows{timed.Of(turnrow.Table, b.onDeadline)}),
		output(catalog.EnrichedMessageInput), output(catalog.ToolUse), output(catalog.ToolUseDLQ),
		output(catalog.ToolUseAllComplete), output(catalog.MessageInput), output(catalog.MessageOutput),
	)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition Apply to Goka: it decodes, calls Apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	rules  rules
	cache  *stateCache

	eventsExist func() bool // nil if the rules say it
}

// rulesNow returns the rules with what is known since the processor was made.
func (b *binding) rulesNow() rules {
	r := b.rules
	r.EventsExist = r.EventsExist || b.eventsExist != nil && b.eventsExist()
	return r
}

func (b *binding) onMessage(c *processors.Context, in codec.Decoded[topics.Message]) error {
	return b.apply(c, MessageArrived{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onThinkResponse(c *processors.Context, in codec.Decoded[topics.ThinkResponse]) error {
	return b.apply(c, ThinkResponded{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onThinkFailure(c *processors.Context, in codec.Decoded[topics.ThinkFailure]) error {
	return b.apply(c, ThinkFailed{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onToolResult(c *processors.Context, in codec.Decoded[topics.ToolUseResult]) error {
	return b.apply(c, ToolAnswered{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onToolFailure(c *processors.Context, in codec.Decoded[topics.ToolUseItem]) error {
	return b.apply(c, ToolFailed{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onRoute(c *processors.Context, in codec.Decoded[topics.Route]) error {
	return b.apply(c, RouteGiven{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	if err := b.apply(c, Controlled{recordOf(c, in.Raw), in.Value}); err != nil {
		return err
	}
	b.reportControl(c, in.Value)
	return nil
}

func (b *binding) onCompaction(c *processors.Context, in codec.Decoded[topics.CompactionResult]) error {
	return b.apply(c, Compacted{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onGateOutcome(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	return b.apply(c, GateEnded{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onGateRequest(c *processors.Context, in codec.Decoded[topics.GateRequest]) error {
	return b.apply(c, GateOpened{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, DeadlineCame{Session: c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *Record {
	r := &Record{
		Session: c.Key(), Cause: c.CauseID(), At: c.Timestamp(), Value: raw,
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), headers: c.Headers(),
	}
	_, r.Own = r.headers[topics.HeaderID]
	return r
}

// apply applies an event to its session's row. A row that a newer build wrote stops the processor, because writing it would
// lose what this build does not understand: a purge waits there until a newer build has the partition. A purge of a row that
// is damaged in another way erases the session. Any other event that cannot be applied has the outcome of a defect.
func (b *binding) apply(c *processors.Context, e Event) error {
	if e.writtenByTurn() { // the cached state stays valid
		return nil
	}
	out, err := b.decide(c, e, c.Now())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	switch {
	case err == nil:
	case purges(e):
		out, err = b.erase(c, e.record(), err), nil
	default:
		out = defect(c.Value(), e, err, c.Now(), b.rulesNow())
		err = b.encode(&out)
	}
	if err == nil && out.Changed && purges(e) && c.HasParts() {
		out.UnusedParts, err = unnamedParts(c, out)
	}
	if err != nil {
		return err
	}
	return b.perform(c, out)
}

// decide reads the state of an event's session, applies the event, and encodes the whole outcome before anything is
// emitted or written. A panic becomes an error that wraps errBroken.
func (b *binding) decide(row tableRow, e Event, now time.Time) (out Outcome, err error) {
	defer func() {
		// The panic value may contain prompt text, so only its type is included in the error.
		if thrown := recover(); thrown != nil {
			out, err = Outcome{}, fmt.Errorf("%w: panic: %T", errBroken, thrown)
		}
	}()
	from, err := b.cache.read(row, e.session())
	if err != nil {
		return Outcome{}, err
	}
	if l, ok := row.(tableLookup); ok && b.rules.hasBudgets() {
		from.spendings = lookedUp{l, goka.Table(b.topics.Spending.Name())}
	}
	if d, ok := e.(DeadlineCame); ok {
		if r, ok := row.(reading); ok {
			e = d.withUnread(from.state, now, b.rules, r)
		}
	}
	rules := b.rulesNow()
	if l, ok := row.(limited); ok {
		b.within(&rules, l)
	}
	if out, err = apply(from, e, now, rules); err != nil {
		return Outcome{}, err
	}
	if err = b.encode(&out); err != nil {
		return Outcome{}, err
	}
	b.cache.keep(e.session(), out)
	return out, nil
}
