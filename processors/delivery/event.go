package delivery

import "github.com/turntable-streams/turntable/topics"

// Event is an input of Apply: a record of an input topic, or a deadline of the row.
type Event interface {
	session() string
	apply(t *transition)
}

// Record describes the record of an event. Apply only reads it.
type Record struct {
	// Session is the session ID: the record's key and the key of the row.
	Session string
	// Cause identifies the record, and is the same for every repeat of it (processors.Context.CauseID).
	Cause string
	// Own reports whether the record has a turntable.id header.
	Own bool
	// Value is the record's value; nil for a tombstone.
	Value []byte
	// WrittenMS is the record's timestamp in milliseconds since the epoch, as its producer or the broker set it. 0 if the
	// record has none.
	WrittenMS int64
}

func (r *Record) session() string { return r.Session }
func (r *Record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// OutputArrived is a record of message-output.
	OutputArrived struct {
		*Record
		Output topics.Output
	}
	// MessageGiven is a record of channel-messages.
	MessageGiven struct {
		*Record
		Output topics.Output
	}
	// RouteGiven is a record of reply-to.
	RouteGiven struct {
		*Record
		Route topics.Route
	}
	// ReceiptArrived is a record of delivery-receipts.
	ReceiptArrived struct {
		*Record
		Receipt topics.Receipt
	}
	// Controlled is a record of delivery-control.
	Controlled struct {
		*Record
		Control topics.DeliveryControl
	}
	// DeadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	DeadlineCame struct {
		Session string
	}
)

func (d DeadlineCame) session() string { return d.Session }
