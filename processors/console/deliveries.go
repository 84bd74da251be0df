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
	// NoRoutes is how many more receivers fail.
	NoRoutes int
}

// routeLine is a route whose receiver fails.
type routeLine struct{ Route, State string }

func deliveries(r *request) {
	x := r.console.follower.index
	b := deliveriesPage{Status: r.first("status")}
	l := listing[deliveryLine]{Page: "/deliveries", Parameters: []any{"status", b.Status}, Noun: "delivery", Empty: "No delivery"}
	b.List = listed(r, l, pageSize, nil, r.deliveryEntries(x, b.Status))
	if r.everything() {
		b.Routes, b.NoRoutes = r.routes(x)
	}
	r.show(http.StatusOK, "deliveries", page{Title: "Deliveries", Section: "/deliveries", About: aboutDeliveries, Body: b})
}

// deliveryEntries are the deliveries with a status: without one those that wait.
func (r *request) deliveryEntries(x *index, status string) entries[*openDelivery, deliveryLine] {
	e := entries[*openDelivery, deliveryLine]{
		of: &x.open, place: func(ms int64, id string) *openDelivery {
			return &openDelivery{due: ms, created: ms, view: delivery.View{DeliveryID: id}}
		},
		cursor: func(d *openDelivery) (int64, string) { return d.due, d.view.DeliveryID },
		see: func(d *openDelivery) (deliveryLine, string, bool) {
			return r.deliveryOf(d), d.session, status == "" || status == d.view.Status
		},
		some: status != "" && status != delivery.StatusDead,
	}
	if status == delivery.StatusDead {
		e.of, e.cursor = &x.dead, func(d *openDelivery) (int64, string) { return d.created, d.view.DeliveryID }
	}
	return e
}

// routes returns the first routes whose receivers fail, and how many more there are.
func (r *request) routes(x *index) (list []routeLine, more int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, route := range slices.Sorted(maps.Keys(x.circuits)) {
		state, err := delivery.DescribeCircuit(x.circuits[route], r.now)
		switch {
		case err != nil || !failing(state):
		case len(list) == pageSize:
			more++
		default:
			list = append(list, routeLine{route, state})
		}
	}
	return list, more
}

// failing reports whether a route's breaker is not closed.
func failing(state string) bool { return !strings.HasPrefix(state, delivery.CircuitClosed) }
