package gate

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface{ apply(t *transition) }

// The events: one for each input topic, and one for deadlines.
type (
	// requested is a record of gate-requests.
	requested struct {
		*machine.Record
		Request topics.GateRequest
	}
	// decided is a record of gate-decisions.
	decided struct {
		*machine.Record
		Decision topics.GateDecision
	}
	// controlled is a record of session-control.
	controlled struct {
		*machine.Record
		Control topics.Control
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed. The inputs have been read through read; the
	// zero time is now.
	deadlineCame struct{ read time.Time }
)
