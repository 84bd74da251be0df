package delivery

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface{ apply(t *transition) }

// The events: one for each input topic, and one for deadlines.
type (
	// outputArrived is a record of message-output.
	outputArrived struct {
		*machine.Record
		Output topics.Output
	}
	// messageGiven is a record of channel-messages.
	messageGiven struct {
		*machine.Record
		Output topics.Output
	}
	// routeGiven is a record of reply-to.
	routeGiven struct {
		*machine.Record
		Route topics.Route
	}
	// receiptArrived is a record of delivery-receipts.
	receiptArrived struct {
		*machine.Record
		Receipt topics.Receipt
	}
	// controlled is a record of delivery-control.
	controlled struct {
		*machine.Record
		Control topics.DeliveryControl
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed. The inputs have been read through read; the
	// zero time is now.
	deadlineCame struct{ read time.Time }
)

// writtenMS is the timestamp of a record in milliseconds since the epoch, 0 if it has none.
func writtenMS(r *machine.Record) int64 { return max(0, r.At.UnixMilli()) }
