package gate

import "github.com/turntable-streams/turntable/topics"

// Effect is a record to write: an Emit or a DeadLetter.
type Effect interface{ effect() }

// Emit is a record for an output topic.
type Emit struct {
	// Key is the session ID, or the agent of a GrantGiven.
	Key string
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// Value is the record's value. Its type selects the topic.
	Value Value
}

// DeadLetter sends a record to the group's dead-letter topic.
type DeadLetter struct {
	// Held is the record if it was held in the row; nil means the record of the event.
	Held   *Held
	Reason string
}

func (Emit) effect()       {}
func (DeadLetter) effect() {}

// Value is the value of an output record. Its type selects the topic.
type Value interface{ value() }

// The values of the output topics.
type (
	// GateEnded goes to gate-outcomes: how a gate ended.
	GateEnded topics.GateOutcome
	// CloseAsked goes to gate-decisions: the gate ends when this record is read, unless a decision is before it.
	CloseAsked topics.GateDecision
	// DecisionResolved goes to gate-decisions: a decision that named its gate by a code, now with the ID of the gate.
	DecisionResolved topics.GateDecision
	// MessageSent goes to channel-messages: a question, how it ended, or why a decision had no effect.
	MessageSent topics.Output
	// GrantGiven goes to gate-grants: a decision gave a standing approval for the agent.
	GrantGiven topics.GateGrant
)

func (GateEnded) value()  {}
func (CloseAsked) value() {}
func (GrantGiven) value() {}

func (DecisionResolved) value() {}
func (MessageSent) value()      {}

func (t *transition) emit(key, id string, v Value) {
	t.effects = append(t.effects, Emit{Key: key, ID: id, Value: v})
}

// deadLetter sends the record that is applied to the dead-letter topic: that of the event, or one that was held.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, DeadLetter{Held: t.replaying, Reason: reason})
}
