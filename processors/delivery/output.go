package delivery

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// apply opens the delivery of an output. A tombstone has nothing to deliver.
func (e outputArrived) apply(t *transition) {
	if e.Tombstone() {
		return
	}
	switch {
	case topics.DelegationOf(e.Output.ReplyTo) != nil: // package delegation passes it on
		return
	case t.config.Channels && topics.OriginOf(e.Output.ReplyTo) != nil:
		t.openToChannel(e.Record, e.Output, turnOf(e.Record), ofDelivery)
		return
	}
	to, routed := t.destination(e.Output.ReplyTo)
	routeID := topics.RouteIDOf(e.Output.ReplyTo)
	if !routed { // without a service the reply route has no destination
		t.dropRoute(routeID)
		routeID = ""
	}
	if to.Kind == "" {
		return
	}
	turn := turnOf(e.Record)
	id := identify(ofDelivery, t.key, turn, to.Key()+"\x00"+routeID)
	if t.opened(id) {
		return
	}
	d := &deliveryrow.Delivery{
		Id: id, TurnId: turn, RequestId: e.Output.RequestID, Kind: to.Kind, Service: to.Service,
		RouteId: routeID, Routed: routed, Body: topics.WithoutReplyTo(e.Value),
		CreatedMs: t.nowMS(), ExpiresMs: t.after(t.config.TTL), Phase: deliveryrow.Phase_PHASE_PENDING, DueMs: t.nowMS(),
	}
	switch {
	case routeID != "":
		t.awaitRoute(d)
	case routed:
		if token := topics.TokenOf(e.Output.ReplyTo); strings.TrimSpace(token) != "" {
			d.Token = &token
		}
		if !t.supersedeRoutes(d.GetToken()) {
			t.expectRoute(d.GetToken(), writtenMS(e.Record))
		}
	}
	t.open(d)
}

// destination returns where an output is delivered. routed reports whether its reply descriptor names a service; if not,
// the destination is Config.Unrouted. A descriptor never names an address. A blank service counts as none.
func (t *transition) destination(descriptor topics.Raw) (to topics.Destination, routed bool) {
	service := topics.ServiceOf(descriptor)
	if strings.TrimSpace(service) == "" {
		return t.config.Unrouted, false
	}
	return topics.Destination{Kind: t.config.service(service).Kind, Service: service}, true
}

// turnOf returns the ID of the turn that wrote an output: the first segment of the record's turntable.id. For records
// without that header it is the record's cause. A long ID is replaced by its digest.
func turnOf(r *machine.Record) string {
	turn := r.ID
	if first, _, ok := strings.Cut(r.ID, "/"); ok && r.Own && first != "" {
		turn = first
	}
	return bounded(turn)
}

// opened reports whether a delivery was opened before.
func (t *transition) opened(id string) bool {
	dead := slices.ContainsFunc(t.row.Dead, func(d *deliveryrow.Delivery) bool { return d.Id == id })
	return dead || t.find(id) != nil || t.remembers(digests.Of(ofEnded, id))
}

// open adds a delivery to the row. If there is no room for it, it ends dead immediately.
func (t *transition) open(d *deliveryrow.Delivery) {
	t.changed = true
	size := t.sizeOfAttempt(d)
	if size > t.config.RecordLimit {
		d.Body = nil // the record on delivery-dlq would be too large too
		t.markDead(d, reasonTooLarge)
		return
	}
	if len(t.row.Open) >= t.config.OpenLimit {
		t.markDead(d, reasonTooMany)
		return
	}
	t.row.Open = append(t.row.Open, d)
	if !t.makeRoom() {
		t.row.Open = t.row.Open[:len(t.row.Open)-1]
		t.markDead(d, reasonNoRoom)
	}
}

// sizeOfAttempt returns an upper bound, in bytes, of the delivery's records on deliveries and on delivery-dlq. The latter
// lists all failures.
func (t *transition) sizeOfAttempt(d *deliveryrow.Delivery) int {
	const envelope, escaped, failure = 1024, 6, 2*maxReason + 80
	room := len(d.Body) + len(d.Channel)
	if d.Kind == topics.KindChannel {
		room += MaxProgress
	}
	texts := 3*len(t.key) + len(d.TurnId) + len(d.GetRequestId()) + len(d.Service) + len(d.GetToken())
	return envelope + escaped*texts + room + failure*t.config.serviceOf(routeOf(d)).Attempts
}
