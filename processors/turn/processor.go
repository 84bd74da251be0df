package turn

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Graph is the turn of an agent, for processors.New: its inputs, its table and its outputs, in the group
// "{agent}-streams".
func Graph(agent string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("turn: %w", err)
	}
	rules, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	b := &binding{catalog, rules}
	edges := processors.Edges(catalog.Group(),
		processors.Input(catalog.MessageInput, b.onMessage,
			processors.KeyedBy(func(m topics.Message) *string { return m.SessionID })),
		processors.Input(catalog.ThinkRequestResponse, b.onThinkResponse),
		processors.Input(catalog.ThinkDLQ, b.onThinkFailure),
		processors.Input(catalog.ToolUseResult, b.onToolResult),
		processors.Input(catalog.ToolUseDLQ, b.onToolFailure),
		processors.Input(catalog.ReplyTo, b.onRoute),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	return goka.DefineGroup(catalog.Group(), append(edges,
		goka.Persist(rows{TableCodec(), b.onDeadline}),
		output(catalog.EnrichedMessageInput), output(catalog.ToolUse), output(catalog.ToolUseDLQ),
		output(catalog.ToolUseAllComplete), output(catalog.MessageInput), output(catalog.MessageOutput),
	)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding performs what the transition says.
type binding struct {
	topics topics.Catalog
	rules  Rules
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
	return b.apply(c, Controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, DeadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *Record {
	r := &Record{
		Session: c.Key(), Cause: c.CauseID(), At: c.Timestamp(), Value: raw,
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(),
	}
	for name, value := range c.Headers() {
		r.Headers = append(r.Headers, &Header{Name: []byte(name), Value: value})
	}
	slices.SortFunc(r.Headers, func(a, b *Header) int { return slices.Compare(a.Name, b.Name) })
	_, r.Own = c.Headers()[topics.HeaderID]
	return r
}

// apply applies an event to its session's row. Only a row that this build cannot read stops the processor: a newer
// build wrote it, and what this one would write over it would be lost.
func (b *binding) apply(c *processors.Context, e Event) error {
	state, err := StateOf(c.Value())
	if errors.Is(err, ErrRowVersion) {
		return err
	}
	out, row, err := b.attempt(state, err, e, c.Now())
	if err != nil {
		return b.surrender(c, e, err)
	}
	return b.perform(c, out, row)
}

// done is an outcome in bytes.
type done struct {
	emits   []emit
	letters []DeadLetter
	changed bool
}

type emit struct {
	stream goka.Stream
	key    string
	id     string
	raw    []byte
	value  any // raw, for the topic's codec
}

// errBroken is why an event could not be applied: a defect of ours, or a row whose bytes are no row.
var errBroken = errors.New("turn: the event cannot be applied")

// attempt applies an event and encodes all that comes of it, before any of it is done. row is nil where the row goes.
func (b *binding) attempt(state *State, unreadable error, e Event, now time.Time) (d done, row []byte, err error) {
	defer func() {
		// What was thrown may quote a prompt: it is not repeated.
		if thrown := recover(); thrown != nil {
			d, row, err = done{}, nil, fmt.Errorf("%w: panic: %T", errBroken, thrown)
		}
	}()
	if unreadable != nil {
		return done{}, nil, unreadable
	}
	out := Apply(state, e, now, b.rules)
	if d, err = b.encode(out.Effects); err != nil {
		return done{}, nil, err
	}
	d.changed = out.Changed
	if out.Changed && out.State != nil {
		row, err = EncodeState(out.State)
	}
	return d, row, err
}

func (b *binding) encode(effects []Effect) (d done, err error) {
	for _, effect := range effects {
		switch v := effect.(type) {
		case Emit:
			out, err := b.encodeEmit(v)
			if err != nil {
				return done{}, err
			}
			d.emits = append(d.emits, out)
		case DeadLetter:
			d.letters = append(d.letters, v)
		}
	}
	return d, nil
}

func (b *binding) encodeEmit(e Emit) (emit, error) {
	switch v := e.Value.(type) {
	case Enriched:
		return encode(e, b.topics.EnrichedMessageInput, topics.EnrichedMessage(v))
	case Called:
		return encode(e, b.topics.ToolUse, topics.ToolUseItem(v))
	case Refused:
		return encode(e, b.topics.ToolUseDLQ, topics.ToolUseItem(v))
	case Completed:
		return encode(e, b.topics.ToolUseAllComplete, topics.ToolResults(v))
	case ToolMessage:
		return encode(e, b.topics.MessageInput, topics.Message(v))
	case Answered:
		return encode(e, b.topics.MessageOutput, topics.Output(v))
	default:
		return emit{}, fmt.Errorf("%w: %T has no topic", errBroken, v)
	}
}

func encode[T any](e Emit, t topics.Topic[T], v T) (emit, error) {
	raw, err := t.Codec().Marshal(v)
	if err != nil {
		return emit{}, fmt.Errorf("turn: encode %s: %w", t.Name(), err)
	}
	// A codec writes the bytes of a value that it could not read as they are: so these are not encoded twice.
	return emit{t.Stream(), e.Key, e.ID, raw, codec.Decoded[T]{Raw: raw, Err: errEncoded}}, nil
}

// errEncoded marks bytes that are encoded already.
var errEncoded = errors.New("turn: encoded already")

func (b *binding) perform(c *processors.Context, d done, row []byte) error {
	var errs []error
	for _, e := range d.emits {
		errs = append(errs, c.Emit(e.stream, e.key, e.value, goka.Headers{topics.HeaderID: []byte(e.id)}))
	}
	for _, l := range d.letters {
		errs = append(errs, deadLetter(c, l))
	}
	switch {
	case d.changed && row == nil:
		errs = append(errs, c.Delete())
	case d.changed:
		errs = append(errs, c.SetValue(row))
	}
	return errors.Join(errs...)
}

func deadLetter(c *processors.Context, l DeadLetter) error {
	h := l.Held
	if h == nil {
		return c.DeadLetter(l.Reason)
	}
	headers := make(goka.Headers, len(h.Headers))
	for _, header := range h.Headers {
		headers[string(header.Name)] = header.Value
	}
	return c.DeadLetterOther(processors.Letter{
		Topic: h.Topic, Partition: h.Partition, Offset: h.Offset,
		Key: c.Key(), Value: h.Value, Headers: headers, Reason: l.Reason,
	})
}
