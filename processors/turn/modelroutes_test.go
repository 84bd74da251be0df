package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// The oracle's rules of reply routes.

type meantRoute struct {
	request string
	stamp   int64
}

type replyRoute struct {
	descriptor     string
	stamp, expires int64
}

func (o *oracle) alive(r *replyRoute) bool { return r != nil && r.expires > o.now.UnixMilli() }

// routed keeps a route: a named one for its request, an unnamed one for the oldest unfinished message without request
// and route that is not older, else for the next such message.
func (o *oracle) routed(r *modelRecord, m meantRoute) bool {
	if o.noRoom() {
		return false
	}
	e := r.event.(routeGiven)
	descriptor := r.value
	if o.rules.Delivery {
		descriptor = string(topics.WithoutToken(topics.Raw(r.value), topics.RouteID(o.key, e.Cause)))
	}
	route := replyRoute{descriptor, m.stamp, o.now.Add(o.rules.RouteTTL).UnixMilli()}
	if m.request != "" {
		o.named[m.request] = route
		return true
	}
	for i, a := range o.unfinished {
		if a.request == "" && !a.noRoute && !o.alive(a.route) && a.stamp >= route.stamp {
			o.unfinished[i].route = &route
			return true
		}
	}
	o.unnamed = append(o.unnamed, route)
	return true
}

// takeRoute is the oldest open unnamed route that is not newer than a message.
func (o *oracle) takeRoute(a acceptedMessage) *replyRoute {
	for i, r := range o.unnamed {
		if o.alive(&r) && r.stamp <= a.stamp {
			o.unnamed = slices.Delete(o.unnamed, i, i+1)
			return &r
		}
	}
	return nil
}

// useRoute is the route of an output. Each route is used once.
func (o *oracle) useRoute(a acceptedMessage) string {
	if a.noRoute {
		return a.own
	}
	if a.request != "" {
		r, ok := o.named[a.request]
		delete(o.named, a.request)
		if !ok || !o.alive(&r) {
			return ""
		}
		return r.descriptor
	}
	if !o.alive(a.route) {
		return ""
	}
	o.used = append(o.used, o.now.UnixMilli())
	return a.route.descriptor
}

// withdraw applies the tombstone of someone else. Without deliveries of our own each used unnamed route has one to come
// from whoever served it: these withdraw nothing. Any other withdraws the oldest unnamed route that is still open.
func (o *oracle) withdraw() bool {
	used := o.used
	for len(used) > 0 && used[0] <= o.now.Add(-o.rules.RouteTTL).UnixMilli() {
		used = used[1:]
	}
	if len(used) > 0 && !o.rules.Delivery {
		o.used = used[1:]
		return true
	}
	oldest, of := (*replyRoute)(nil), -1
	for i, a := range o.unfinished {
		if o.alive(a.route) && (oldest == nil || a.route.expires < oldest.expires) {
			oldest, of = a.route, i
		}
	}
	at := -1
	for i, r := range o.unnamed {
		if o.alive(&r) && (oldest == nil || r.expires < oldest.expires) {
			oldest, of, at = &r, -1, i
		}
	}
	if of >= 0 {
		o.unfinished[of].route = nil
	} else if at >= 0 {
		o.unnamed = slices.Delete(o.unnamed, at, at+1)
	}
	return true
}

// expireRoutes forgets the routes whose time has come when a deadline does.
func (o *oracle) expireRoutes() {
	for request, r := range o.named {
		if !o.alive(&r) {
			delete(o.named, request)
		}
	}
	o.unnamed = slices.DeleteFunc(o.unnamed, func(r replyRoute) bool { return !o.alive(&r) })
	for i, a := range o.unfinished {
		if !o.alive(a.route) {
			o.unfinished[i].route = nil
		}
	}
}
