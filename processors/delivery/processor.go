package delivery

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-delivery-streams" for processors.New: the deliveries of an agent's outputs, in one row
// per session. It looks up routes in the table of RoutesGraph, which must run too, in this process or in another. It
// returns an error if the agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, config: c}
	inputs := []processors.Source{
		processors.Input(catalog.MessageOutput, b.onOutput, processors.Confidential[topics.Output]()), // it may contain a bearer token
		processors.Input(catalog.ReplyTo, b.onRoute, processors.Confidential[topics.Route]()),
		processors.Input(catalog.DeliveryReceipts, b.onReceipt),
		processors.Input(catalog.DeliveryControl, b.onControl),
	}
	if c.PeerCallbacks {
		inputs = append(inputs, processors.Input(catalog.PeerCallbacks, b.onOutput, processors.Confidential[topics.Output]()))
	}
	if c.Channels {
		inputs = append(inputs, processors.Input(catalog.ChannelMessages, b.onMessage))
	}
	edges := processors.Edges(catalog.DeliveryGroup(), inputs...)
	return goka.DefineGroup(catalog.DeliveryGroup(), append(edges,
		goka.Persist(timed.Of(deliveryrow.Table, b.onDeadline)),
		goka.Lookup(catalog.DeliveryRoutes(), deliveryrow.CircuitTable.Codec()),
		output(catalog.Deliveries), output(catalog.DeliveryReceipts), output(catalog.DeliveryDLQ), output(catalog.ReplyTo),
	)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition apply to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	config Config
}

func (b *binding) onOutput(c *processors.Context, in codec.Decoded[topics.Output]) error {
	return b.apply(c, outputArrived{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onMessage(c *processors.Context, in codec.Decoded[topics.Output]) error {
	return b.apply(c, messageGiven{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onRoute(c *processors.Context, in codec.Decoded[topics.Route]) error {
	return b.apply(c, routeGiven{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onReceipt(c *processors.Context, in codec.Decoded[topics.Receipt]) error {
	return b.apply(c, receiptArrived{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onControl(c *processors.Context, in codec.Decoded[topics.DeliveryControl]) error {
	return b.apply(c, controlled{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *record {
	_, own := c.Headers()[topics.HeaderID]
	r := &record{Session: c.Key(), Cause: c.CauseID(), Own: own, Value: raw}
	if at := c.Timestamp(); !at.IsZero() {
		r.WrittenMS = at.UnixMilli()
	}
	return r
}

// apply applies an event to the row of its session. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered.
func (b *binding) apply(c *processors.Context, e event) error {
	state, err := deliveryrow.Table.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonBroken)
	}
	config := b.config
	config.RecordLimit = min(config.RecordLimit, c.MaxRecordBytes())
	out := apply(state, e, b.routes(c), c.Now(), config)
	for _, effect := range out.Effects {
		if err := b.emit(c, effect); err != nil {
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

// routes looks up routes in the table of RoutesGraph. That table is stale by some milliseconds, or for as long as that
// group does not run. This is harmless: an attempt that a current table would have prevented is deferred by the sink, or
// fails and is retried.
func (b *binding) routes(c *processors.Context) routes {
	return func(key string) gate {
		circuit, err := deliveryrow.CircuitTable.Of(c.Lookup(b.topics.DeliveryRoutes(), key))
		if err != nil {
			return gate{}
		}
		return circuitGate(circuit, c.Now())
	}
}

// emit writes the record of an effect.
func (b *binding) emit(c *processors.Context, effect effect) error {
	e, ok := effect.(emit)
	if !ok {
		return c.DeadLetter(effect.(deadLetter).Reason)
	}
	switch v := e.Value.(type) {
	case attemptRequested:
		return processors.EmitWithID(c, b.topics.Deliveries, e.Key, topics.Delivery(v), e.ID)
	case finalReceipt:
		return processors.EmitWithID(c, b.topics.DeliveryReceipts, e.Key, topics.Receipt(v), e.ID)
	case deliveryDead:
		return processors.EmitWithID(c, b.topics.DeliveryDLQ, e.Key, topics.DeadDelivery(v), e.ID)
	case routeRemoved:
		return c.EmitWithID(b.topics.ReplyTo.Stream(), e.Key, nil, e.ID)
	default:
		return fmt.Errorf("delivery: no topic for %T", e.Value)
	}
}
