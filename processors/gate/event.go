package gate

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface {
	session() string
	apply(t *transition)
}

// record describes the record of an event. apply only reads it.
type record struct {
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

func (r *record) session() string { return r.Session }
func (r *record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// requested is a record of gate-requests.
	requested struct {
		*record
		Request topics.GateRequest
	}
	// decided is a record of gate-decisions.
	decided struct {
		*record
		Decision topics.GateDecision
	}
	// controlled is a record of session-control.
	controlled struct {
		*record
		Control topics.Control
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct {
		Session string
	}
)

func (d deadlineCame) session() string { return d.Session }
