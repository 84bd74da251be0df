package delivery

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// RoutesGraph returns the group "{agent}-delivery-routes" for processors.New: the circuit breaker of each route and its
// attempts in flight, in one row per route (topics.Destination.Key). Give it the Config of Graph. Its errors are
// those of Graph.
func RoutesGraph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &c)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*deliveryrow.Circuit, *topics.Receipt]{
		Table: deliveryrow.CircuitTable, // a broken row is replaced: it holds nothing that later receipts do not restore
		Apply: func(x *processors.Context, row *deliveryrow.Circuit, r *topics.Receipt) (out machine.Outcome[*deliveryrow.Circuit], _ error) {
			if r != nil {
				out.Row = applyReceipt(row, *r, x.Now(), c.Breaker)
			}
			out.Changed = out.Row != nil
			return out, nil
		},
	}
	receipts := machine.Input(m, catalog.DeliveryReceipts, func(r *machine.Record, v topics.Receipt) *topics.Receipt {
		if r.Tombstone() {
			return nil
		}
		return &v
	}, processors.KeyedBy(circuitKey))
	edges := processors.Edges(catalog.DeliveryRoutesGroup(), receipts)
	return goka.DefineGroup(catalog.DeliveryRoutesGroup(), append(edges, goka.Persist(m.Table.Codec()))...), nil
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
