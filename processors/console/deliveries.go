package console

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/delivery"
)

// deliveryLine is a delivery in a list.
type deliveryLine struct {
	delivery.View
	Due, Created int64
	Failures     int
	Last         string // why the last attempt failed
	Breaker      string // what the route's breaker does, "" if it is closed
}

// deliveryOf returns the line of a delivery. The caller holds the lock of the index.
func (r *request) deliveryOf(d *openDelivery) deliveryLine {
	l := deliveryLine{View: d.view, Due: d.due, Created: d.created, Failures: d.failures, Last: d.last}
	if row, ok := r.console.follower.index.circuits[d.view.Route.Key()]; ok {
		if state, err := delivery.DescribeCircuit(row, r.now); err == nil && failing(state) {
			l.Breaker = state
		}
	}
	return l
}

// deliveriesPage is a part of the deliveries.
type deliveriesPage struct {
	Status string
	List   listing[deliveryLine]
	Routes []routeLine
}

// routeLine is a route whose receiver fails.
type routeLine struct{ Route, State string }

func deliveries(r *request) {
	x := r.console.follower.index
	b := deliveriesPage{Status: r.first("status")}
	l := listing[deliveryLine]{Page: "/deliveries", Parameters: []any{"status", b.Status}, Noun: "delivery", Empty: "No delivery"}
	x.mu.Lock()
	o := &x.open
	place := func(ms int64, id string) *openDelivery {
		return &openDelivery{due: ms, created: ms, view: delivery.View{DeliveryID: id}}
	}
	cursor := func(d *openDelivery) (int64, string) { return d.due, d.view.DeliveryID }
	if b.Status == delivery.StatusDead {
		o, cursor = &x.dead, func(d *openDelivery) (int64, string) { return d.created, d.view.DeliveryID }
	}
	b.List = listed(r, l, o, pageSize, place, cursor, func(d *openDelivery) (deliveryLine, bool) {
		wanted := b.Status == "" || b.Status == d.view.Status
		return r.deliveryOf(d), wanted && r.Caller.Allowed(d.session)
	})
	if b.List.Total = -1; r.Caller.MayUse == nil && (b.Status == "" || b.Status == delivery.StatusDead) {
		b.List.Total = o.n
	}
	if r.everything() {
		for _, route := range slices.Sorted(maps.Keys(x.circuits)) {
			if state, err := delivery.DescribeCircuit(x.circuits[route], r.now); err == nil && len(b.Routes) < pageSize && failing(state) {
				b.Routes = append(b.Routes, routeLine{route, state})
			}
		}
	}
	x.mu.Unlock()
	r.show(http.StatusOK, "deliveries", page{Title: "Deliveries", Section: "/deliveries", About: aboutDeliveries, Body: b})
}

// failing reports whether a route's breaker is not closed.
func failing(state string) bool { return !strings.HasPrefix(state, delivery.CircuitClosed) }
