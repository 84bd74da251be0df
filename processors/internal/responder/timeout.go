package responder

import (
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Timeout is how long after the timestamp of its record a worker may answer a step or a call.
type Timeout struct {
	After time.Duration
	// Chosen says that the user chose it. Else it counts only for records without a deadline of their own.
	Chosen bool
}

// Deadline returns when a record must be answered: at its turntable.deadline, when the turn stops waiting, and not after a
// chosen timeout. begun is the time that the timeout counts from.
func (t Timeout) Deadline(r processors.Inbound, begun time.Time) time.Time {
	limit := begun.Add(t.After)
	at, ok := topics.Deadline(r.Header(topics.HeaderDeadline))
	if ok && (!t.Chosen || at.Before(limit)) {
		return at
	}
	return limit
}
