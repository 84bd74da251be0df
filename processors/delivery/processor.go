package delivery

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Graph is the delivery of an agent's outputs, for processors.New: its inputs, its table and its outputs, in the group
// "{agent}-delivery-streams". It looks routes up in the table of RoutesGraph, which must run beside it, anywhere.
func Graph(agent string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	rules, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	b := &binding{catalog, rules}
	edges := processors.Edges(catalog.DeliveryGroup(),
		processors.Input(catalog.MessageOutput, b.onOutput),
		processors.Input(catalog.ReplyTo, b.onRoute, processors.Confidential[topics.Route]()),
		processors.Input(catalog.DeliveryReceipts, b.onReceipt),
		processors.Input(catalog.DeliveryControl, b.onControl),
	)
	return goka.DefineGroup(catalog.DeliveryGroup(), append(edges,
		goka.Persist(rows{TableCodec(), b.onDeadline}),
		goka.Lookup(catalog.DeliveryRoutes(), CircuitCodec()),
		output(catalog.Deliveries), output(catalog.DeliveryReceipts), output(catalog.DeliveryDLQ), output(catalog.ReplyTo),
	)...), nil
}

// RoutesGraph keeps the state of the routes, for processors.New: the circuit of each and what is on its way, in the
// group "{agent}-delivery-routes". Its table is keyed by route (topics.Destination.Key).
func RoutesGraph(agent string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	rules, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	edges := processors.Edges(catalog.DeliveryRoutesGroup(),
		processors.Input(catalog.DeliveryReceipts, rules.Breaker.onReceipt, processors.KeyedBy(routeOf)),
	)
	return goka.DefineGroup(catalog.DeliveryRoutesGroup(), append(edges, goka.Persist(CircuitCodec()))...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// routeOf has the receipts of attempts go to their route's row, by the group's loop topic. The others stay where they
// are and change nothing.
func routeOf(r topics.Receipt) *string {
	key := r.SessionID
	if reportsRoute(r) {
		key = r.Route.Key()
	}
	return &key
}

func (b Breaker) onReceipt(c *processors.Context, in codec.Decoded[topics.Receipt]) error {
	if in.Tombstone() {
		return nil
	}
	circuit, err := CircuitOf(c.Value())
	if errors.Is(err, ErrRowVersion) {
		return err
	}
	if err != nil { // bytes that are no row: the route begins anew
		circuit = nil
	}
	if next := ApplyReceipt(circuit, in.Value, c.Now(), b); next != nil {
		return c.SetValue(next)
	}
	return nil
}

// binding performs what the transition says.
type binding struct {
	topics topics.Catalog
	rules  Rules
}

func (b *binding) onOutput(c *processors.Context, in codec.Decoded[topics.Output]) error {
	return b.apply(c, OutputArrived{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onRoute(c *processors.Context, in codec.Decoded[topics.Route]) error {
	return b.apply(c, RouteGiven{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onReceipt(c *processors.Context, in codec.Decoded[topics.Receipt]) error {
	return b.apply(c, Reported{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.DeliveryControl]) error {
	return b.apply(c, Controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, DeadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *Record {
	_, own := c.Headers()[topics.HeaderID]
	return &Record{Session: c.Key(), Cause: c.CauseID(), Own: own, Value: raw}
}

// apply applies an event to its session's row. A row that this build cannot read stops the processor: a newer build
// wrote it, and what this one would write over it would be lost. One whose bytes are no row stays as it is.
func (b *binding) apply(c *processors.Context, e Event) error {
	state, err := StateOf(c.Value())
	if errors.Is(err, ErrRowVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	out := Apply(state, e, b.routes(c), c.Now(), b.rules)
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

// routes looks into the table of the routes' group. It is late by some milliseconds, or for as long as that group
// stands still. That is harmless: what it would have held back is deferred by the sink, or fails.
func (b *binding) routes(c *processors.Context) Routes {
	return func(key string) Gate {
		circuit, err := CircuitOf(c.Lookup(b.topics.DeliveryRoutes(), key))
		if err != nil {
			return Gate{}
		}
		return circuit.Gate(c.Now())
	}
}

func (b *binding) perform(c *processors.Context, effect Effect) error {
	e, ok := effect.(Emit)
	if !ok {
		return c.DeadLetter(effect.(DeadLetter).Reason)
	}
	switch v := e.Value.(type) {
	case Attempted:
		return processors.EmitWithID(c, b.topics.Deliveries, e.Key, topics.Delivery(v), e.ID)
	case Ended:
		return processors.EmitWithID(c, b.topics.DeliveryReceipts, e.Key, topics.Receipt(v), e.ID)
	case Buried:
		return processors.EmitWithID(c, b.topics.DeliveryDLQ, e.Key, topics.DeadDelivery(v), e.ID)
	case RouteRemoved:
		return c.EmitWithID(b.topics.ReplyTo.Stream(), e.Key, nil, e.ID)
	default:
		return fmt.Errorf("delivery: no topic for %T", e.Value)
	}
}
