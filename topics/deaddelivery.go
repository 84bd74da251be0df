package topics

// DeadDelivery is the value of {agent}-delivery-dlq: a delivery that was given up, and the reason.
type DeadDelivery struct {
	// Delivery is written without its token.
	Delivery Delivery `json:"delivery" as:"merged"`
	// Reason says why the delivery was given up. It never quotes the delivery or the receiver.
	Reason string `json:"reason"`
	// Failures are the failed attempts, oldest first.
	Failures []DeliveryFailure `json:"failures"`
	// AtMS is when the delivery was given up, in Unix milliseconds.
	AtMS int64 `json:"at_ms"`
}

// DeliveryFailure is a failed attempt.
type DeliveryFailure struct {
	Attempt int64  `json:"attempt" as:"int32"`
	Reason  string `json:"reason"`
	Status  int64  `json:"status" as:"int32"` // HTTP status, 0 if there was no response
	AtMS    int64  `json:"at_ms"`             // Unix milliseconds
}

var (
	deadDeliveryTags = tagged(checkDeadDelivery)
	deadDeliveryWire = wire[DeadDelivery]{depth: MaxDepth, read: deadDeliveryTags.read, write: writeDeadDelivery}
)

func checkDeadDelivery(d *DeadDelivery) error {
	if d.Delivery.DeliveryID == "" {
		return missing("delivery")
	}
	return nil
}

func writeDeadDelivery(w *writer, d DeadDelivery) {
	d.Delivery.Token = nil
	deadDeliveryTags.write(w, d)
}

// ActionRequeue restarts a dead delivery: it gets a new retry budget and keeps its ID.
const ActionRequeue = "requeue"

// DeliveryControl is the value of {agent}-delivery-control: an operator's request about one delivery.
type DeliveryControl struct {
	Action     string `json:"action"` // ActionRequeue
	DeliveryID string `json:"delivery_id"`
}

var deliveryControlWire = tagged(checkDeliveryControl)

func checkDeliveryControl(r *DeliveryControl) error {
	switch {
	case r.Action != ActionRequeue:
		return wrongType("action", "not "+ActionRequeue)
	case r.DeliveryID == "":
		return missing("delivery_id")
	}
	return nil
}
