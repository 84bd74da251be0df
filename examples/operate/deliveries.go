package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/turntable-streams/turntable/processors/delivery"
)

// deliveriesCommand lists deliveries.
type deliveriesCommand struct {
	Session string `help:"Only deliveries of this session."`
	Status  string `enum:",route,pending,in_flight,dead" default:"" help:"Only deliveries that wait for this: route, pending, in_flight or dead."`
}

// deliveryList is the JSON of the command deliveries. It has no bodies.
type deliveryList struct {
	Agent      string          `json:"agent"`
	Deliveries []delivery.View `json:"deliveries"`
}

func (c *deliveriesCommand) Run(ctx context.Context, o *operator) error {
	if _, err := o.connect(ctx); err != nil {
		return err
	}
	views, err := o.deliveries(ctx, func(v delivery.View) bool {
		return (c.Session == "" || v.SessionID == c.Session) && (c.Status == "" || v.Status == c.Status)
	})
	if err != nil {
		return err
	}
	return o.print(deliveryList{o.agent, views}, func(t *columns) { writeDeliveries(t, views) })
}

// deliveries returns the deliveries of the table, oldest first, without their bodies.
func (o *operator) deliveries(ctx context.Context, wants func(delivery.View) bool) ([]delivery.View, error) {
	table := tableOf(o.cluster.catalog.DeliveryGroup())
	all := newRows(delivery.TableCodec(), func(session string, row any) ([]delivery.View, error) {
		views, err := delivery.Deliveries(session, row)
		for i := range views {
			views[i].Body = nil
		}
		return views, err
	})
	if err := readAll(ctx, o, table, all); err != nil {
		return nil, err
	}
	all.warn(o, table)
	list := []delivery.View{}
	for _, views := range all.byKey {
		for _, v := range views {
			if wants(v) {
				list = append(list, v)
			}
		}
	}
	slices.SortFunc(list, func(a, b delivery.View) int {
		return cmp.Or(compareTimes(a.CreatedAt, b.CreatedAt), cmp.Compare(a.DeliveryID, b.DeliveryID))
	})
	return list, nil
}

func writeDeliveries(t *columns, views []delivery.View) {
	t.line("DELIVERY", "SESSION", "ROUTE", "STATUS", "ATTEMPT", "BYTES", "CREATED", "DUE", "LAST FAILURE")
	for _, v := range views {
		last := ""
		if n := len(v.Failures); n > 0 {
			last = v.Failures[n-1].Reason
		}
		t.line(v.DeliveryID, v.SessionID, v.Route.Key(), v.Status, v.Attempt, v.Bytes, t.at(v.CreatedAt), t.at(v.DueAt), last)
	}
}
