package topics

import "fmt"

// Outcome is the result of an attempt or, in a final receipt, of a delivery.
type Outcome string

// The outcomes.
const (
	// OutcomeDelivered: the receiver accepted the delivery.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeSuppressed: nothing was sent, because the delivery has nothing to send, or its place shows no such messages.
	OutcomeSuppressed Outcome = "suppressed"
	// OutcomeFailed: the attempt failed with an error that may be transient. The delivery group may retry.
	OutcomeFailed Outcome = "failed"
	// OutcomeRefused: the attempt failed with a permanent error. The delivery group does not retry.
	OutcomeRefused Outcome = "refused"
	// OutcomeDeferred: the sink made no attempt, because the route has too many in flight.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeDead: the delivery was given up. It occurs only in final receipts.
	OutcomeDead Outcome = "dead"
)

// The reasons of sinks that groups compare. Receipts of other builds have them, so the texts must not change.
const (
	// ReasonInterrupted: the sink was stopped during the attempt.
	ReasonInterrupted = "sink was stopped"
	// ReasonTimeout: the attempt took too long.
	ReasonTimeout = "timeout"
	// ReasonNotConnected: the recipient of a channel is not there. Others of the same account may be.
	ReasonNotConnected = "recipient is not connected"
	// ReasonConversationBusy: another message of the same conversation was being sent.
	ReasonConversationBusy = "conversation is busy"
	// ReasonContinues: the lease ended before all of a message was sent. The next attempt sends the rest.
	ReasonContinues = "lease ends, continued in the next attempt"
)

// Receipt is the value of {agent}-delivery-receipts and {agent}-peer-receipts. A sink writes one for each attempt. The delivery group writes one
// final receipt for each delivery, and one more each time that the delivery is requeued.
type Receipt struct {
	DeliveryID string
	SessionID  string
	Attempt    int64
	Route      Destination
	Outcome    Outcome
	// Final is true in the receipts of the delivery group. Their outcome is delivered, suppressed or dead.
	Final bool
	// Reason says why an attempt failed, or why nothing was sent. It never quotes the delivery, the receiver's response or an address.
	Reason *string
	// Status is the HTTP status, 0 if there was no response.
	Status int64
	// RetryAfterMS is the receiver's Retry-After in milliseconds, 0 if there was none.
	RetryAfterMS int64
	// Sink is the name of the sink process. InFlight is the number of other attempts that it has in flight on the route.
	Sink     *string
	InFlight int64
	AtMS     int64 // Unix milliseconds
	// Response is what a transport with responses returned, nil for others. A final receipt of a KindChannel has that of the
	// last attempt.
	Response Raw
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
		case "response":
			r.Response, err = c.document()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	switch r.Outcome {
	case OutcomeDelivered, OutcomeSuppressed, OutcomeFailed, OutcomeRefused, OutcomeDeferred, OutcomeDead:
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
	w.someRaw("response", r.Response)
	w.close()
}
