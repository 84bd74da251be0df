package delivery

import "github.com/turntable-streams/turntable/topics"

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface {
	session() string
	apply(t *transition)
}

// record describes the record of an event. apply only reads it.
type record struct {
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

func (r *record) session() string { return r.Session }
func (r *record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// outputArrived is a record of message-output.
	outputArrived struct {
		*record
		Output topics.Output
	}
	// messageGiven is a record of channel-messages.
	messageGiven struct {
		*record
		Output topics.Output
	}
	// routeGiven is a record of reply-to.
	routeGiven struct {
		*record
		Route topics.Route
	}
	// receiptArrived is a record of delivery-receipts.
	receiptArrived struct {
		*record
		Receipt topics.Receipt
	}
	// controlled is a record of delivery-control.
	controlled struct {
		*record
		Control topics.DeliveryControl
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct {
		Session string
	}
)

func (d deadlineCame) session() string { return d.Session }
