package topics

import "fmt"

// DeadDelivery is the value of {agent}-delivery-dlq: a delivery that was given up, and the reason.
type DeadDelivery struct {
	// Delivery is written without its token.
	Delivery Delivery
	// Reason says why the delivery was given up. It never quotes the delivery or the receiver.
	Reason string
	// Failures are the failed attempts, oldest first.
	Failures []DeliveryFailure
	// AtMS is when the delivery was given up, in Unix milliseconds.
	AtMS int64
}

// DeliveryFailure is a failed attempt.
type DeliveryFailure struct {
	Attempt int64
	Reason  string
	Status  int64 // HTTP status, 0 if there was no response
	AtMS    int64 // Unix milliseconds
}

var deadDeliveryWire = wire[DeadDelivery]{depth: MaxDepth, read: readDeadDelivery, write: writeDeadDelivery}

func readDeadDelivery(c *cursor, d *DeadDelivery) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "delivery":
			if c.dec.PeekKind() == 'n' {
				return c.skip()
			}
			err = readDelivery(c, &d.Delivery)
		case "reason":
			d.Reason, err = c.word()
		case "failures":
			d.Failures, _, err = readList(c, readDeliveryFailure)
		case "at_ms":
			d.AtMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && d.Delivery.DeliveryID == "" {
		return fmt.Errorf("%w: field delivery: missing", ErrType)
	}
	return err
}

func readDeliveryFailure(c *cursor, f *DeliveryFailure) error {
	return c.object(func(name []byte) (err error) {
		switch string(name) {
		case "attempt":
			f.Attempt, err = c.integer(32)
		case "reason":
			f.Reason, err = c.word()
		case "status":
			f.Status, err = c.integer(32)
		case "at_ms":
			f.AtMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
}

func writeDeadDelivery(w *writer, d DeadDelivery) {
	d.Delivery.Token = nil
	w.grow(len(d.Delivery.Body))
	w.open()
	w.name("delivery")
	writeDelivery(w, d.Delivery)
	w.word("reason", d.Reason)
	writeList(w, "failures", d.Failures, func(w *writer, f DeliveryFailure) {
		w.open()
		w.integer("attempt", f.Attempt)
		w.word("reason", f.Reason)
		w.integer("status", f.Status)
		w.integer("at_ms", f.AtMS)
		w.close()
	})
	w.integer("at_ms", d.AtMS)
	w.close()
}

// ActionRequeue restarts a dead delivery: it gets a new retry budget and keeps its ID.
const ActionRequeue = "requeue"

// DeliveryControl is the value of {agent}-delivery-control: an operator's request about one delivery.
type DeliveryControl struct {
	Action     string // ActionRequeue
	DeliveryID string
}

var deliveryControlWire = wire[DeliveryControl]{depth: MaxDepth, read: readDeliveryControl, write: writeDeliveryControl}

func readDeliveryControl(c *cursor, r *DeliveryControl) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "action":
			r.Action, err = c.word()
		case "delivery_id":
			r.DeliveryID, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case r.Action != ActionRequeue:
		return fmt.Errorf("%w: field action: not %s", ErrType, ActionRequeue)
	case r.DeliveryID == "":
		return fmt.Errorf("%w: field delivery_id: missing", ErrType)
	}
	return nil
}

func writeDeliveryControl(w *writer, r DeliveryControl) {
	w.open()
	w.word("action", r.Action)
	w.word("delivery_id", r.DeliveryID)
	w.close()
}
