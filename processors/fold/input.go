package fold

import "github.com/turntable-streams/turntable/topics"

// input is an input of the state machine: a record of an input topic, or a deadline.
type input interface {
	sessionID() string
	apply(s *transition)
}

// The inputs.
type (
	// eventReceived is a record of agent-events. apply does not change or keep its bytes.
	eventReceived struct {
		Session   string
		Tombstone bool
		Event     topics.AgentEvent
	}
	// controlReceived is a record of session-control.
	controlReceived struct {
		Session   string
		Cause     string // the record's cause ID, which identifies a redelivered control
		Tombstone bool
		Control   topics.Control
	}
	// outcomeReceived is a record of gate-outcomes.
	outcomeReceived struct {
		Session   string
		Tombstone bool
		Outcome   topics.GateOutcome
	}
	// deadlineReached states that the row's earliest deadline is due.
	deadlineReached struct {
		Session string
	}
)

func (a eventReceived) sessionID() string   { return a.Session }
func (c controlReceived) sessionID() string { return c.Session }
func (o outcomeReceived) sessionID() string { return o.Session }
func (d deadlineReached) sessionID() string { return d.Session }
