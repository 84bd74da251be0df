package delivery

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// RoutesGraph returns the group "{agent}-delivery-routes" for processors.New: the circuit breaker of each route and its
// attempts in flight, in one row per route (topics.Destination.Key). Give it the Config of Graph. Its errors are
// those of Graph.
func RoutesGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	edges := processors.Edges(catalog.DeliveryRoutesGroup(),
		processors.Input(catalog.DeliveryReceipts, c.Breaker.onReceipt, processors.KeyedBy(circuitKey)),
	)
	return goka.DefineGroup(catalog.DeliveryRoutesGroup(), append(edges, goka.Persist(deliveryrow.CircuitTable.Codec()))...), nil
}

// circuitKey re-keys the receipts that say something about a route by that route, through the group's loop topic. Other
// receipts keep their key and change nothing.
func circuitKey(r topics.Receipt) *string {
	key := r.SessionID
	if reportsRoute(r) {
		key = r.Route.Key()
	}
	return &key
}

// onReceipt applies a receipt to the row of its route. A row with a newer version stops the processor. A row that cannot
// be decoded is replaced: a circuit holds nothing that later receipts do not restore.
func (b Breaker) onReceipt(c *processors.Context, in codec.Decoded[topics.Receipt]) error {
	if in.Tombstone() {
		return nil
	}
	circuit, err := deliveryrow.CircuitTable.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		circuit = nil
	}
	if next := applyReceipt(circuit, in.Value, c.Now(), b); next != nil {
		return c.SetValue(next)
	}
	return nil
}
