package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// View is what an operator may see of a delivery. Times are ISO 8601. It encodes to JSON, and has no token. Deliveries returns the
// views of a row.
type View struct {
	DeliveryID string             `json:"delivery_id"`
	SessionID  string             `json:"session_id"`
	TurnID     string             `json:"turn_id"`
	RequestID  string             `json:"request_id,omitempty"`
	Route      topics.Destination `json:"route"`
	// Status is one of the Status constants. DueAt is when the wait that it names ends; a dead delivery is kept until then.
	Status string `json:"status"`
	DueAt  string `json:"due_at,omitempty"`
	// Attempt is the number of the last attempt, 0 before the first one. Requeueing a dead delivery does not reset it.
	Attempt   int    `json:"attempt"`
	Bytes     int    `json:"bytes"`
	CreatedAt string `json:"created_at"`
	// ExpiresAt is when the delivery is given up.
	ExpiresAt string `json:"expires_at"`
	// Failures are the failed attempts since the delivery was created or requeued, oldest first.
	Failures []topics.DeliveryFailure `json:"failures"`
	// Body is what is delivered. It is text of people: show it only on request.
	Body topics.Raw `json:"body,omitzero"`

	round uint32
}

// What a delivery waits for.
const (
	StatusRoute    = "route"     // the record of its reply route
	StatusPending  = "pending"   // the time of its next attempt
	StatusInFlight = "in_flight" // the receipt of an attempt
	StatusDead     = "dead"      // an operator, who may requeue it
)

var statuses = map[deliveryrow.Phase]string{
	deliveryrow.Phase_PHASE_ROUTE: StatusRoute, deliveryrow.Phase_PHASE_PENDING: StatusPending,
	deliveryrow.Phase_PHASE_IN_FLIGHT: StatusInFlight, deliveryrow.Phase_PHASE_DEAD: StatusDead,
}

// Deliveries returns the deliveries of a session's row: those without a final receipt in the order in which they were opened,
// then the dead ones that can be requeued, oldest first. The row is a value of the table, as Processor.Get and a goka.View with
// TableCodec return it; nil is a session without a row. The views alias the row.
func Deliveries(session string, row any) (views []View, err error) {
	s, err := deliveryrow.Table.Of(row)
	if err != nil {
		return nil, err
	}
	for _, d := range s.GetOpen() {
		views = append(views, viewOf(session, d))
	}
	for _, d := range s.GetDead() {
		views = append(views, viewOf(session, d))
	}
	return views, nil
}

func viewOf(session string, d *deliveryrow.Delivery) View {
	v := View{
		DeliveryID: d.Id, SessionID: session, TurnID: d.TurnId, RequestID: d.GetRequestId(), Route: routeOf(d),
		Status: statuses[d.Phase], DueAt: isoOrEmpty(d.DueMs), Attempt: int(d.Attempt), Bytes: len(d.Body),
		CreatedAt: isoOrEmpty(d.CreatedMs), ExpiresAt: isoOrEmpty(d.ExpiresMs), Failures: []topics.DeliveryFailure{},
		Body: d.Body, round: d.Round,
	}
	for _, f := range d.Failures {
		v.Failures = append(v.Failures, topics.DeliveryFailure{
			Attempt: int64(f.Attempt), Reason: f.Reason, Status: int64(f.Status), AtMS: f.AtMs,
		})
	}
	return v
}

// Requeue is the function Requeue for a dead delivery that an operator has seen, once: the ID of the record is that of this death,
// so repeats of the call have no effect while the session remembers it (Config.RememberFor), also after the delivery has died again.
// by is who asks for it, for the header topics.HeaderBy.
func (v View) Requeue(ctx context.Context, to processors.Publisher, agent, by string) error {
	return requeue(ctx, to, agent, v.SessionID, v.DeliveryID, fmt.Sprintf("%s/requeue/%d", v.DeliveryID, v.round), by)
}

func isoOrEmpty(ms int64) string {
	if ms == 0 {
		return ""
	}
	return topics.Timestamp(time.UnixMilli(ms))
}
