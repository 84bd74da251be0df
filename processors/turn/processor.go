package turn

import (
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group graph of an agent's turns, for processors.New: the inputs, the table and the outputs of the group
// "{agent}-streams". It returns an error if the agent's name is invalid, or one that wraps ErrOption if an option is out
// of range.
func Graph(agent string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("turn: %w", err)
	}
	rules, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	b := &binding{catalog, rules, newRecent()}
	edges := processors.Edges(catalog.Group(),
		processors.Input(catalog.MessageInput, b.onMessage,
			processors.KeyedBy(func(m topics.Message) *string { return m.SessionID }),
			processors.Known[topics.Message](b.isKnown)),
		processors.Input(catalog.ThinkRequestResponse, b.onThinkResponse),
		processors.Input(catalog.ThinkDLQ, b.onThinkFailure),
		processors.Input(catalog.ToolUseResult, b.onToolResult),
		processors.Input(catalog.ToolUseDLQ, b.onToolFailure),
		processors.Input(catalog.ReplyTo, b.onRoute, processors.Confidential[topics.Route]()),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	return goka.DefineGroup(catalog.Group(), append(edges,
		goka.Persist(rows{TableCodec(), b.onDeadline}),
		output(catalog.EnrichedMessageInput), output(catalog.ToolUse), output(catalog.ToolUseDLQ),
		output(catalog.ToolUseAllComplete), output(catalog.MessageInput), output(catalog.MessageOutput),
	)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding runs the transition for each callback and performs its effects.
type binding struct {
	topics topics.Catalog
	rules  Rules
	recent *recent
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
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), headers: c.Headers(),
	}
	_, r.Own = r.headers[topics.HeaderID]
	return r
}

// apply applies an event to its session's row. A row that a newer build wrote stops the processor, because writing it would
// lose what this build does not understand. Any other event that cannot be applied is handled by surrender.
func (b *binding) apply(c *processors.Context, e Event) error {
	d, err := b.attempt(c, e, c.Now())
	switch {
	case errors.Is(err, ErrRowVersion):
		return err
	case err != nil:
		return b.surrender(c, e, err)
	}
	return b.perform(c, d)
}

// found reads a row and its parts. *processors.Context implements it.
type found interface {
	Value() any
	HasParts() bool
	Part(number uint32) ([]byte, error)
}

// done is an encoded outcome.
type done struct {
	emits   []emit
	letters []DeadLetter
	changed bool
	row     []byte // nil: delete the row
	parts   []newPart
	gone    []uint32
}

type emit struct {
	stream goka.Stream
	key    string
	id     string
	raw    codec.Encoded
}

var (
	// errBroken marks an event that cannot be applied because of a bug in this package or a damaged row.
	errBroken = errors.New("turn: the event cannot be applied")
	// errNoParts is returned for a row that was written under processors.New and is read under plain goka.NewProcessor.
	errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", ErrRowVersion)
)

// attempt applies an event and encodes the whole outcome before anything is emitted or written. A panic becomes an error
// that wraps errBroken.
func (b *binding) attempt(r found, e Event, now time.Time) (d done, err error) {
	defer func() {
		// The panic value may contain prompt text, so only its type is included in the error.
		if thrown := recover(); thrown != nil {
			d, err = done{}, fmt.Errorf("%w: panic: %T", errBroken, thrown)
		}
	}()
	out, a, err := b.decide(r, e, now, false)
	if err == nil && out.Starved {
		out, a, err = b.decide(r, e, now, true)
	}
	if err != nil {
		return done{}, err
	}
	if d, err = b.encode(out.Effects); err != nil {
		return done{}, err
	}
	if d.changed = out.Changed; !d.changed {
		return d, nil
	}
	var w written
	d.parts, d.gone, w.whole = a.store(out.State, now.UnixMilli())
	if out.State == nil {
		return d, nil
	}
	if d.row, err = EncodeState(out.State); err != nil {
		return done{}, err
	}
	w.row, w.state, w.asked = d.row, out.State, out.asked
	b.recent.keep(e.session(), w)
	return d, nil
}

// decide loads the state and applies an event. Late fields are loaded if late is true or the event is likely to need them:
// a tool's result needs the conversation only if it is the last of its step.
func (b *binding) decide(r found, e Event, now time.Time, late bool) (out Outcome, a apart, err error) {
	var state *State
	var known *wholes
	var step asked
	row := r.Value()
	if raw, ok := row.(storedRow); ok {
		if ours(e) && b.recent.has(e.session(), raw) {
			return Outcome{}, a, nil // the cached state stays valid
		}
		if w, ok := b.recent.take(e.session(), raw); ok {
			state, known, step = w.state, &w.whole, w.asked
		}
	}
	if state == nil {
		if state, err = StateOf(row); err != nil {
			return Outcome{}, a, err
		}
	}
	if state != nil {
		err = a.load(state, late || needsHistory(state, e), r, known)
	} else {
		err = a.load(&State{}, true, r, nil)
	}
	if err != nil {
		return Outcome{}, a, err
	}
	a.limit = b.rules.RowLimit
	rules := b.rules
	rules.RowLimit -= a.reserve() // the transition does not know which parts will be written
	return apply(state, step, e, now, rules), a, nil
}

// ours reports whether an event is the turn's own tool message, which the transition ignores: it is written for other
// readers of message-input.
func ours(e Event) bool {
	m, ok := e.(MessageArrived)
	return ok && !m.tombstone() && m.byTurn() && m.Own
}

func needsHistory(s *State, e Event) bool {
	switch e.(type) {
	case ToolAnswered, ToolFailed:
		return s.Turn != nil && openCalls(s.Turn) == 1
	case RouteGiven:
		return false
	}
	return true
}

func openCalls(t *OpenTurn) (open int) {
	for _, c := range t.Calls {
		if !c.ended() {
			open++
		}
	}
	return open
}

func (b *binding) encode(effects []Effect) (d done, err error) {
	if len(effects) > 0 {
		d.emits = make([]emit, 0, len(effects))
	}
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
	return emit{t.Stream(), e.Key, e.ID, raw}, nil
}

func (b *binding) perform(c *processors.Context, d done) error {
	var errs []error
	try := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, e := range d.emits {
		try(c.EmitWithID(e.stream, e.key, e.raw, e.id))
	}
	for _, l := range d.letters {
		try(deadLetter(c, l))
	}
	for _, p := range d.parts {
		try(c.SetPart(p.number, p.value))
	}
	for _, n := range d.gone {
		try(c.DeletePart(n))
	}
	switch {
	case d.changed && d.row == nil:
		try(c.Delete())
	case d.changed:
		try(c.SetValue(d.row))
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
