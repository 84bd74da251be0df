package topics

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
	DeliveryID string      `json:"delivery_id"`
	SessionID  string      `json:"session_id"`
	Attempt    int64       `json:"attempt" as:"int32"`
	Route      Destination `json:"route"`
	Outcome    Outcome     `json:"outcome"`
	// Final is true in the receipts of the delivery group. Their outcome is delivered, suppressed or dead.
	Final bool `json:"final"`
	// Reason says why an attempt failed, or why nothing was sent. It never quotes the delivery, the receiver's response or an address.
	Reason *string `json:"reason"`
	// Status is the HTTP status, 0 if there was no response.
	Status int64 `json:"status" as:"int32"`
	// RetryAfterMS is the receiver's Retry-After in milliseconds, 0 if there was none.
	RetryAfterMS int64 `json:"retry_after_ms"`
	// Sink is the name of the sink process. InFlight is the number of other attempts that it has in flight on the route.
	Sink     *string `json:"sink"`
	InFlight int64   `json:"in_flight" as:"int32"`
	AtMS     int64   `json:"at_ms"` // Unix milliseconds
	// Response is what a transport with responses returned, nil for others. A final receipt of a KindChannel has that of the
	// last attempt.
	Response Raw `json:"response,omitzero" as:"object"`
}

var receiptWire = tagged(checkReceipt)

func checkReceipt(r *Receipt) error {
	switch r.Outcome {
	case OutcomeDelivered, OutcomeSuppressed, OutcomeFailed, OutcomeRefused, OutcomeDeferred, OutcomeDead:
	default:
		return wrongType("outcome", "unknown")
	}
	if r.DeliveryID == "" {
		return missing("delivery_id")
	}
	return nil
}
