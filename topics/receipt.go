package topics

import "fmt"

// Outcome is how an attempt, or a delivery, ended.
type Outcome string

// The outcomes.
const (
	// OutcomeDelivered: the receiver took it.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeFailed: the attempt failed; another may do better.
	OutcomeFailed Outcome = "failed"
	// OutcomeRefused: the attempt failed, and so would every other.
	OutcomeRefused Outcome = "refused"
	// OutcomeDeferred: no attempt was made, because too many are on their way on the route.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeDead: the delivery was given up. Of a final receipt only.
	OutcomeDead Outcome = "dead"
)

// Receipt is the value of {agent}-delivery-receipts. A sink writes one for each attempt; the delivery group decides
// what comes of it and writes the final one, of which every delivery gets one (one more each time it is requeued).
type Receipt struct {
	DeliveryID string
	SessionID  string
	Attempt    int64
	Route      Destination
	Outcome    Outcome
	// Final is true in the delivery group's own: the outcome is delivered or dead then.
	Final bool
	// Reason says in words of ours why an attempt failed. It never quotes the delivery, the receiver or an address.
	Reason *string
	// Status is the HTTP status, 0 where there was none.
	Status int64
	// RetryAfterMS is what the receiver asked for, 0 for nothing.
	RetryAfterMS int64
	// Sink names the sink's process, and InFlight how many attempts it has on the route besides this one.
	Sink     *string
	InFlight int64
	AtMS     int64
}

var receiptWire = wire[Receipt]{depth: MaxDepth, read: readReceipt, write: writeReceipt}

func readReceipt(c *cursor, r *Receipt) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "delivery_id":
			r.DeliveryID, err = c.word()
		case "session_id":
			r.SessionID, err = c.word()
		case "attempt":
			r.Attempt, err = c.integer(32)
		case "route":
			r.Route, err = readDestination(c)
		case "outcome":
			var outcome string
			outcome, err = c.word()
			r.Outcome = Outcome(outcome)
		case "final":
			r.Final, err = c.boolean()
		case "reason":
			r.Reason, err = c.text()
		case "status":
			r.Status, err = c.integer(32)
		case "retry_after_ms":
			r.RetryAfterMS, err = c.integer(64)
		case "sink":
			r.Sink, err = c.text()
		case "in_flight":
			r.InFlight, err = c.integer(32)
		case "at_ms":
			r.AtMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	switch r.Outcome {
	case OutcomeDelivered, OutcomeFailed, OutcomeRefused, OutcomeDeferred, OutcomeDead:
	default:
		return fmt.Errorf("%w: field outcome: unknown", ErrType)
	}
	if r.DeliveryID == "" {
		return fmt.Errorf("%w: field delivery_id: missing", ErrType)
	}
	return nil
}

func writeReceipt(w *writer, r Receipt) {
	w.open()
	w.word("delivery_id", r.DeliveryID)
	w.word("session_id", r.SessionID)
	w.integer("attempt", r.Attempt)
	writeDestination(w, r.Route)
	w.word("outcome", string(r.Outcome))
	w.boolean("final", r.Final)
	w.text("reason", r.Reason)
	w.integer("status", r.Status)
	w.integer("retry_after_ms", r.RetryAfterMS)
	w.text("sink", r.Sink)
	w.integer("in_flight", r.InFlight)
	w.integer("at_ms", r.AtMS)
	w.close()
}
