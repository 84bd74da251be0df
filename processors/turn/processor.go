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
	if err := c.complete(); err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, rules: rules{Config: c, Agent: agent}, cache: newStateCache()}
	sources := []processors.Source{
		input(b, catalog.MessageInput, func(r *record, v topics.Message) event { return messageArrived{r, v} },
			processors.KeyedBy(func(m topics.Message) *string { return m.SessionID }),
			processors.Known[topics.Message](b.isOwnToolMessage)),
		input(b, catalog.ThinkRequestResponse, func(r *record, v topics.ThinkResponse) event { return thinkResponded{r, v} }),
		input(b, catalog.ThinkDLQ, func(r *record, v topics.ThinkFailure) event { return thinkFailed{r, v} },
			processors.Repartitioned[topics.ThinkFailure]()),
		input(b, catalog.ToolUseResult, func(r *record, v topics.ToolUseResult) event { return toolAnswered{r, v} }),
		input(b, catalog.ToolUseDLQ, func(r *record, v topics.ToolUseItem) event { return toolFailed{r, v} }),
		input(b, catalog.ReplyTo, func(r *record, v topics.Route) event { return routeGiven{r, v} },
			processors.Confidential[topics.Route]()),
		processors.Input(catalog.SessionControl, b.onControl),
	}
	var more []goka.Edge
	if c.Compaction != nil {
		sources = append(sources, input(b, catalog.CompactionResult, func(r *record, v topics.CompactionResult) event { return compacted{r, v} }))
		more = append(more, output(catalog.CompactionRequest))
	}
	if c.usesGates() {
		sources = append(sources, input(b, catalog.GateOutcomes, func(r *record, v topics.GateOutcome) event { return gateEnded{r, v} }))
		more = append(more, output(catalog.GateRequests))
	}
	if c.Gates {
		sources = append(sources, input(b, catalog.GateRequests, func(r *record, v topics.GateRequest) event { return gateOpened{r, v} }))
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

// input binds a topic whose records are events.
func input[T any](
	b *binding, t topics.Topic[T], event func(*record, T) event, opts ...processors.EdgeOption[T],
) processors.Source {
	return processors.Input(t, func(c *processors.Context, in codec.Decoded[T]) error {
		return b.apply(c, event(recordOf(c, in.Raw), in.Value))
	}, opts...)
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	if err := b.apply(c, controlled{recordOf(c, in.Raw), in.Value}); err != nil {
		return err
	}
	b.reportControl(c, in.Value)
	return nil
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{Session: c.Key(), Read: c.Timestamp()})
}

func recordOf(c *processors.Context, raw []byte) *record {
	r := &record{
		Session: c.Key(), Cause: c.CauseID(), At: c.Timestamp(), Value: raw,
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), headers: c.Headers(),
	}
	_, r.Own = r.headers[topics.HeaderID]
	return r
}

// apply applies an event to its session's row. A row that a newer build wrote stops the processor, because writing it would
// lose what this build does not understand: a purge waits there until a newer build has the partition. A purge of a row that
// is damaged in another way erases the session. Any other event that cannot be applied has the outcome of a defect.
func (b *binding) apply(c *processors.Context, e event) error {
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
		out, err = b.erase(c, e.source(), err), nil
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
func (b *binding) decide(row tableRow, e event, now time.Time) (out outcome, err error) {
	defer func() {
		// The panic value may contain prompt text, so only its type is included in the error.
		if thrown := recover(); thrown != nil {
			out, err = outcome{}, fmt.Errorf("%w: panic: %T", errBroken, thrown)
		}
	}()
	from, err := b.cache.read(row, e.session())
	if err != nil {
		return outcome{}, err
	}
	if l, ok := row.(tableLookup); ok && b.rules.hasBudgets() {
		from.spendings = lookedUp{l, goka.Table(b.topics.Spending.Name())}
	}
	if d, ok := e.(deadlineCame); ok {
		if r, ok := row.(reading); ok {
			e = d.withUnread(from.state, now, b.rules, r)
		}
	}
	rules := b.rulesNow()
	if l, ok := row.(limited); ok {
		b.within(&rules, l)
	}
	if out, err = apply(from, e, now, rules); err != nil {
		return outcome{}, err
	}
	if err = b.encode(&out); err != nil {
		return outcome{}, err
	}
	b.cache.keep(e.session(), out)
	return out, nil
}

// limited knows how large the records of topics may be. *processors.Context implements it.
type limited interface {
	MaxRecordBytes(to ...goka.Stream) int
}

// within lowers the rules for topics that accept less than Config.RecordLimit.
func (b *binding) within(r *rules, from limited) {
	if from.MaxRecordBytes() >= r.RecordLimit {
		return
	}
	of := func(topics ...goka.Stream) int { return from.MaxRecordBytes(topics...) }
	t := b.topics
	r.accepted = topicLimits{
		model: of(t.EnrichedMessageInput.Stream()), tool: of(t.ToolUse.Stream(), t.ToolUseDLQ.Stream()),
		completed: of(t.ToolUseAllComplete.Stream()), input: of(t.MessageInput.Stream()), output: of(t.MessageOutput.Stream()),
		gate: of(t.GateRequests.Stream()), event: of(t.AgentEvents.Stream()), compaction: of(t.CompactionRequest.Stream()),
		memoir: of(t.MemoirSessions.Stream(), t.SessionEnd.Stream()),
	}
	if r.Memoir != nil {
		r.accepted.model = min(r.accepted.model, of(t.MemoirLookups.Stream()))
	}
	table := of(goka.Stream(goka.GroupTable(t.Group())))
	r.RowLimit = min(r.RowLimit, table-table/16)
}
