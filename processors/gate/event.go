package gate

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Event is an input of Apply: a record of an input topic, or a deadline of the row.
type Event interface {
	session() string
	apply(t *transition)
}

// Record describes the record of an event. Apply only reads it.
type Record struct {
	// Session is the session ID: the record's key and the key of the row.
	Session string
	// At is the record's timestamp. A time more than a minute after now, or none, counts as now.
	At time.Time
	// Topic, Partition and Offset are the record's coordinates.
	Topic     string
	Partition int32
	Offset    int64
	// Value is the record's value; nil for a tombstone.
	Value []byte
}

func (r *Record) session() string { return r.Session }
func (r *Record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// Requested is a record of gate-requests.
	Requested struct {
		*Record
		Request topics.GateRequest
	}
	// Decided is a record of gate-decisions.
	Decided struct {
		*Record
		Decision topics.GateDecision
	}
	// Controlled is a record of session-control.
	Controlled struct {
		*Record
		Control topics.Control
	}
	// DeadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	DeadlineCame struct {
		Session string
	}
)

func (d DeadlineCame) session() string { return d.Session }
