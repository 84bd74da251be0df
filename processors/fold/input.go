package fold

import "github.com/turntable-streams/turntable/topics"

// Input is something that happened to a session's turns: a record of an input topic, or a deadline that came.
type Input interface {
	session() string
	apply(s *session)
}

// The inputs.
type (
	// Arrived is a record of agent-events. Its bytes are only read, and not kept.
	Arrived struct {
		Session   string
		Tombstone bool
		Event     topics.AgentEvent
	}
	// Controlled is a record of session-control.
	Controlled struct {
		Session   string
		Cause     string // the record's cause id (R20)
		Tombstone bool
		Control   topics.Control
	}
	// DeadlineCame says that the row's earliest deadline has come.
	DeadlineCame struct {
		Session string
	}
)

func (a Arrived) session() string      { return a.Session }
func (c Controlled) session() string   { return c.Session }
func (d DeadlineCame) session() string { return d.Session }
