package fold

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// input is an input of the state machine: a record of an input topic, or a deadline.
type input interface{ apply(s *transition) }

// The inputs.
type (
	// eventReceived is a record of agent-events. apply does not change or keep its bytes.
	eventReceived struct {
		*machine.Record
		Event topics.AgentEvent
	}
	// controlReceived is a record of session-control. A redelivered control has the same ID.
	controlReceived struct {
		*machine.Record
		Control topics.Control
	}
	// outcomeReceived is a record of gate-outcomes.
	outcomeReceived struct {
		*machine.Record
		Outcome topics.GateOutcome
	}
	// deadlineReached states that the row's earliest deadline is due. The inputs have been read through read; the zero time is now.
	deadlineReached struct{ read time.Time }
)
