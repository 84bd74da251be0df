package delivery

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// apply makes a delivery of an output.
func (e OutputArrived) apply(s *session) {
	if e.tombstone() {
		return // there is nothing to deliver
	}
	to, routed := s.destination(e.Output.ReplyTo)
	routeID := topics.RouteIDOf(e.Output.ReplyTo)
	if !routed { // without a service the route leads nowhere
		s.dropRoute(routeID)
		routeID = ""
	}
	if to.Kind == "" {
		return
	}
	turn := turnOf(e.Record)
	id := deliveryID(s.key, turn, to.Key()+"\x00"+routeID)
	if s.known(id) {
		return
	}
	d := &Delivery{
		Id: id, TurnId: turn, RequestId: e.Output.RequestID, Kind: to.Kind, Service: to.Service,
		RouteId: routeID, Routed: routed, Body: topics.WithoutReplyTo(e.Value),
		CreatedMs: s.nowMS(), ExpiresMs: s.after(s.rules.TTL), Phase: Phase_PHASE_PENDING, DueMs: s.nowMS(),
	}
	switch token := topics.TokenOf(e.Output.ReplyTo); {
	case routeID != "":
		s.awaitRoute(d)
	case routed && strings.TrimSpace(token) != "":
		d.Token = &token
	}
	s.open(d)
}

// destination is where an output goes; routed says that its reply descriptor says so. The descriptor names a service,
// never an address. One that names none counts as none (contract 3.5).
func (s *session) destination(descriptor topics.Raw) (to topics.Destination, routed bool) {
	service := topics.ServiceOf(descriptor)
	if strings.TrimSpace(service) == "" {
		return s.rules.Unrouted, false
	}
	return topics.Destination{Kind: s.rules.service(service).Kind, Service: service}, true
}

// turnOf names the turn whose output a record is: the beginning of its derived id. Records of others are named by their
// cause.
func turnOf(r *Record) string {
	turn := r.Cause
	if first, _, ok := strings.Cut(r.Cause, "/"); ok && r.Own && first != "" {
		turn = first
	}
	if len(turn) > maxTurn {
		d := digests.Of(ofTurn, turn)
		return hex.EncodeToString(d[:])
	}
	return turn
}

// known reports whether a delivery was opened before.
func (s *session) known(id string) bool {
	dead := slices.ContainsFunc(s.row.Dead, func(d *Delivery) bool { return d.Id == id })
	return dead || s.find(id) != nil || s.remembers(digests.Of(ofEnded, id))
}

// open takes a delivery in, or buries it where there is no room for it.
func (s *session) open(d *Delivery) {
	s.changed = true
	size := s.sizeOfAttempt(d)
	if size > s.rules.RecordLimit {
		d.Body = nil // a record of the dead would be too large as well
		s.bury(d, reasonTooLarge)
		return
	}
	if len(s.row.Open) >= s.rules.OpenLimit {
		s.bury(d, reasonTooMany)
		return
	}
	s.row.Open = append(s.row.Open, d)
	if !s.makeRoom() {
		s.row.Open = s.row.Open[:len(s.row.Open)-1]
		s.bury(d, reasonNoRoom)
	}
}

// sizeOfAttempt is an upper bound of what the record of an attempt takes on the wire, and that of the dead, with all
// failures.
func (s *session) sizeOfAttempt(d *Delivery) int {
	const envelope, escaped, failure = 1024, 6, 2*maxReason + 80
	texts := 3*len(s.key) + len(d.TurnId) + len(d.GetRequestId()) + len(d.Service) + len(d.GetToken())
	return envelope + escaped*texts + len(d.Body) + failure*s.rules.service(d.Service).Attempts
}
