package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// showCommand shows what the tables have of a session.
type showCommand struct {
	Session string `arg:"" help:"ID of the session."`
	Payload bool   `help:"Also the texts: the conversation, what gates ask, what is delivered. They are prompts of people."`
}

// sessionPage is the JSON of the command show. History, and the texts of gates and deliveries, are there with --payload only.
type sessionPage struct {
	Agent      string          `json:"agent"`
	Session    *turn.View      `json:"session"`
	Gates      []gate.View     `json:"gates"`
	Deliveries []delivery.View `json:"deliveries"`
	Stream     string          `json:"stream"` // what fold.Describe says
	History    topics.Raw      `json:"history,omitzero"`

	texts []string // what the packages say
}

func (c *showCommand) Run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	page := sessionPage{Agent: o.agent, Gates: []gate.View{}, Deliveries: []delivery.View{}}
	found, err := c.readTurn(ctx, o, &page)
	if err != nil {
		return err
	}
	for _, other := range []struct {
		table string
		codec goka.Codec
		add   func(row any) error
	}{
		{tableOf(cluster.catalog.GateGroup()), gate.TableCodec(), func(row any) error {
			views, err := gate.Gates(c.Session, row)
			for _, v := range views {
				page.Gates = append(page.Gates, c.gate(v))
			}
			return page.say("gates", row, err, gate.Describe)
		}},
		{tableOf(cluster.catalog.DeliveryGroup()), delivery.TableCodec(), func(row any) error {
			views, err := delivery.Deliveries(c.Session, row)
			for _, v := range views {
				page.Deliveries = append(page.Deliveries, c.delivery(v))
			}
			return page.say("deliveries", row, err, delivery.Describe)
		}},
		{tableOf(cluster.catalog.FoldGroup()), fold.TableCodec(), func(row any) (err error) {
			page.Stream, err = fold.Describe(row)
			return page.say("stream", row, err, fold.Describe)
		}},
	} {
		if !cluster.names[other.table] {
			continue
		}
		has, err := c.read(ctx, o, other.table, other.codec, other.add)
		if err != nil {
			return err
		}
		found = found || has
	}
	if !found {
		return fmt.Errorf("the tables of %s have no session %q: see turntable sessions; it may have been purged", o.agent, c.Session)
	}
	return o.print(page, func(*columns) { c.write(o, page) })
}

// say adds what a package says of a row.
func (p *sessionPage) say(what string, row any, err error, describe func(any) (string, error)) error {
	if err != nil {
		return err
	}
	text, err := describe(row)
	p.texts = append(p.texts, what+"\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "))
	return err
}

// readTurn reads the row of the turn, and with --payload its history.
func (c *showCommand) readTurn(ctx context.Context, o *operator, page *sessionPage) (found bool, err error) {
	parts := map[uint32][]byte{}
	reads, err := o.reader(ctx, o.cluster.catalog.Table())
	if err != nil {
		return false, err
	}
	defer reads.close()
	var last []byte
	if err := reads.of(ctx, c.Session, func(in processors.Inbound) {
		switch key, part, isPart := processors.TableKey(string(in.Key)); {
		case key != c.Session:
		case isPart && in.Value == nil:
			delete(parts, part)
		case isPart:
			parts[part] = in.Value
		default:
			last = in.Value
		}
	}); err != nil || last == nil {
		return false, err
	}
	row, err := turn.TableCodec().Decode(last)
	if err != nil {
		return false, err
	}
	view, err := turn.Inspect(c.Session, row)
	if err != nil {
		return false, fmt.Errorf("the row of %s cannot be read: %w; a newer build may have written it: use its turntable command", c.Session, err)
	}
	page.Session = &view
	if c.Payload {
		if page.History, err = turn.History(row, func(n uint32) ([]byte, error) { return parts[n], nil }); err != nil {
			return false, err
		}
	}
	return true, page.say("turn", row, nil, turn.Describe)
}

// read reads the row of another table.
func (c *showCommand) read(ctx context.Context, o *operator, table string, codec goka.Codec, add func(any) error) (bool, error) {
	one := newRows(codec, func(_ string, row any) (any, error) { return row, nil })
	reads, err := o.reader(ctx, table)
	if err != nil {
		return false, err
	}
	defer reads.close()
	if err := reads.of(ctx, c.Session, one.only(c.Session)); err != nil {
		return false, err
	}
	row, ok, err := one.one(c.Session)
	if err != nil || !ok {
		return false, err
	}
	if err := add(row); err != nil {
		return false, fmt.Errorf("%s: %w", table, err)
	}
	return true, nil
}

// gate returns a view without its texts, unless they are asked for.
func (c *showCommand) gate(v gate.View) gate.View {
	if c.Payload {
		return v
	}
	return withoutTexts(v)
}

// withoutTexts drops what a person wrote or is asked, and the digest that proves that a decider has seen it.
func withoutTexts(v gate.View) gate.View {
	v.Args, v.ArgsSHA256, v.Message, v.Options, v.ResponseSchema = nil, "", "", nil, nil
	if v.Outcome != nil {
		outcome := *v.Outcome
		outcome.EffectiveArgs, outcome.EffectiveArgsSHA256, outcome.Answer, outcome.Reason = nil, "", nil, ""
		v.Outcome = &outcome
	}
	return v
}

func (c *showCommand) delivery(v delivery.View) delivery.View {
	if !c.Payload {
		v.Body = nil
	}
	return v
}

// write writes the page for people.
func (c *showCommand) write(o *operator, page sessionPage) {
	w := func(format string, args ...any) { _, _ = fmt.Fprintf(o.out, format+"\n", args...) }
	w("session %s of %s", clean(c.Session), o.agent)
	for _, text := range page.texts {
		w("%s", cleanLines(text))
	}
	if !c.Payload {
		return
	}
	for _, g := range page.Gates {
		w("gate %s asks about %s: %s %s\n  args_sha256 %s", clean(g.GateID), clean(g.Tool), indented(g.Args), clean(g.Message), clean(g.ArgsSHA256))
	}
	for _, d := range page.Deliveries {
		w("delivery %s: %s", clean(d.DeliveryID), indented(d.Body))
	}
	w("history: %s", indented(page.History))
}

// indented writes JSON for people.
func indented(value topics.Raw) string {
	if len(value) == 0 {
		return "none"
	}
	text := jsontext.Value(slices.Clone(value))
	err := text.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return clean(string(value))
	}
	return printable(text)
}
