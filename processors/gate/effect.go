package gate

import (
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

// effect is a record to write: an emit or a deadLetter.
type effect interface{ effect() }

// emit is a record for an output topic.
type emit struct {
	// Key is the session ID, or the agent of a grantGiven.
	Key string
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// Value is the record's value. Its type selects the topic.
	Value value
}

// deadLetter sends a record to the group's dead-letter topic.
type deadLetter struct {
	// Held is the record if it was held in the row; nil means the record of the event.
	Held   *gaterow.Held
	Reason string
}

func (emit) effect()       {}
func (deadLetter) effect() {}

// value is the value of an output record. Its type selects the topic.
type value interface{ value() }

// The values of the output topics.
type (
	// gateEnded goes to gate-outcomes: how a gate ended.
	gateEnded topics.GateOutcome
	// closeAsked goes to gate-decisions: the gate ends when this record is read, unless a decision is before it.
	closeAsked topics.GateDecision
	// decisionResolved goes to gate-decisions: a decision that named its gate by a code, now with the ID of the gate.
	decisionResolved topics.GateDecision
	// messageSent goes to channel-messages: a question, how it ended, or why a decision had no effect.
	messageSent topics.Output
	// grantGiven goes to gate-grants: a decision gave a standing approval for the agent.
	grantGiven topics.GateGrant
)

func (gateEnded) value()  {}
func (closeAsked) value() {}
func (grantGiven) value() {}

func (decisionResolved) value() {}
func (messageSent) value()      {}

func (t *transition) emit(key, id string, v value) {
	t.effects = append(t.effects, emit{Key: key, ID: id, Value: v})
}

// deadLetter sends the record that is applied to the dead-letter topic: that of the event, or one that was held.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, deadLetter{Held: t.replaying, Reason: reason})
}
