package delivery

import "github.com/turntable-streams/turntable/topics"

// Event is something that happened to a session's deliveries: a record of an input topic, or a deadline that came.
type Event interface {
	session() string
	apply(s *session)
}

// Record is what every event but a deadline has in common. Its bytes are not changed.
type Record struct {
	// Session is the session id: the key of the row.
	Session string
	// Cause is the record's cause id (R20).
	Cause string
	// Own says that the record carries a turntable.id header.
	Own bool
	// Value is the record's bytes; nil is a tombstone.
	Value []byte
}

func (r *Record) session() string { return r.Session }
func (r *Record) tombstone() bool { return r.Value == nil }

// The events, one for each input topic.
type (
	// OutputArrived is a record of message-output.
	OutputArrived struct {
		*Record
		Output topics.Output
	}
	// RouteGiven is a record of reply-to.
	RouteGiven struct {
		*Record
		Route topics.Route
	}
	// Reported is a record of delivery-receipts.
	Reported struct {
		*Record
		Receipt topics.Receipt
	}
	// Controlled is a record of delivery-control.
	Controlled struct {
		*Record
		Control topics.DeliveryControl
	}
	// DeadlineCame says that the row's earliest deadline has come.
	DeadlineCame struct {
		Session string
	}
)

func (d DeadlineCame) session() string { return d.Session }
