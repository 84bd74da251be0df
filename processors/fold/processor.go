// # The group
//
// The other half folds the stream on Kafka, in the group "{agent}-fold-streams", with all topics keyed by session:
//
//	agent-events ----+    one session's row     +--> batch-messages
//	session-control -+--> (row, input, now) ----+--> think-request-response, think-dlq (WithThinkResponses)
//	deadlines -------+     -> (row, effects)    +--> fold-streams-dlq
//
// Records are named by turn, attempt and seq, which counts them from 1 without holes. Repeats are dropped; what comes
// ahead of a missing record is held in a bounded window; a newer attempt drops the older one; records of a user count
// and are not folded. So a turn's events are folded once each and in their order, or the batch says "gap" and is what
// came before it.
//
// # How a turn ends
//
// With its terminal record: an envelope with a result in place of an event. Its stop reason wins. Instead of one, a
// second done event that names a reason ends the turn at once, and any done event after a grace. While a record is known
// to be missing, the grace does not run: the turn stays open until the gap closes or fails. A turn whose producer has
// vanished expires. Every turn gives exactly one batch, with a state (complete, failed, expired, cancelled) and,
// where it is not complete, a reason (topics.ReasonGap and its like) and what came before. Its turntable.id is derived
// from session and turn: at least once, a crash may repeat it, under the same id. What comes of the turn after that
// changes nothing, for as long as closed turns are remembered; a newer attempt is dead-lettered.
//
// A poison record of the stream goes to the dead letters; its seq is then missing, and its turn ends with a gap. An event
// that is no object, or too large, goes there too, and counts as taken.
//
// # What it costs
//
// An event that was taken is kept as a Log. The row, of which every cut writes one, has its last bytes only; the others
// stand in parts of the row, which are written once and read once, when the turn ends: the batch is the fold of them. So
// what a turn writes grows with its text. Everything is bounded: turns, windows, bytes, what is remembered.
package fold

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Graph folds an agent's event stream, for processors.New: its inputs, its table and its outputs, in the group
// "{agent}-fold-streams". The catalog given to processors.WithTopics is one with topics.WithEvents.
func Graph(agent string, opts ...GroupOption) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	rules, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	b := &binding{catalog, rules}
	edges := processors.Edges(catalog.FoldGroup(),
		processors.Input(catalog.AgentEvents, b.onEvent,
			processors.KeyedBy(func(e topics.AgentEvent) *string { return &e.SessionID })),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	edges = append(edges, goka.Persist(rows{TableCodec(), b.onDeadline}), output(catalog.BatchMessages))
	if rules.ThinkResponses {
		edges = append(edges, output(catalog.ThinkRequestResponse), output(catalog.ThinkDLQ))
	}
	return goka.DefineGroup(catalog.FoldGroup(), edges...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding performs what the transition says.
type binding struct {
	topics topics.Catalog
	rules  Rules
}

func (b *binding) onEvent(c *processors.Context, in codec.Decoded[topics.AgentEvent]) error {
	return b.apply(c, Arrived{c.Key(), in.Tombstone(), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	return b.apply(c, Controlled{c.Key(), c.CauseID(), in.Tombstone(), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, DeadlineCame{c.Key()})
}

// apply applies an input to its session's row. A row that this build cannot read stops the processor: a newer build
// wrote it, and what this one would write over it would be lost. One whose bytes are no row stays as it is.
func (b *binding) apply(c *processors.Context, in Input) error {
	row, err := RowOf(c.Value())
	if errors.Is(err, ErrRowVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	parts, rules := Parts(c.Part), b.rules
	if limit := c.MaxRecordBytes(); limit > 0 {
		rules.RecordLimit = min(rules.RecordLimit, limit) // what is larger would be refused at every attempt
	}
	if !c.HasParts() {
		parts, rules.SessionLimit = nil, rules.RecordLimit-rowReserve
	}
	out, err := Apply(row, in, parts, c.Now(), rules)
	if err != nil {
		return err
	}
	for _, effect := range out.Effects {
		if err := b.perform(c, effect); err != nil {
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

func (b *binding) perform(c *processors.Context, effect Effect) error {
	switch e := effect.(type) {
	case Emit:
		return b.emit(c, e)
	case DeadLetter:
		return c.DeadLetter(e.Reason)
	case PartWritten:
		return c.SetPart(e.Number, e.Value)
	case PartGone:
		return c.DeletePart(e.Number)
	default:
		return fmt.Errorf("fold: nothing performs %T", effect)
	}
}

func (b *binding) emit(c *processors.Context, e Emit) error {
	switch v := e.Value.(type) {
	case Folded:
		return processors.EmitWithID(c, b.topics.BatchMessages, e.Key, topics.BatchMessage(v), e.ID)
	case Thought:
		return processors.EmitWithID(c, b.topics.ThinkRequestResponse, e.Key, topics.ThinkResponse(v), e.ID)
	case Unthought:
		return processors.EmitWithID(c, b.topics.ThinkDLQ, e.Key, topics.ThinkFailure(v), e.ID)
	default:
		return fmt.Errorf("fold: no topic for %T", e.Value)
	}
}
