package peer

import "github.com/turntable-streams/turntable/topics"

// Effect is a record to write: an Emit or a DeadLetter.
type Effect interface{ effect() }

// Emit is a record for an output topic.
type Emit struct {
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// Value is the record's value. Its type selects the topic.
	Value Value
	// Key is the record's key; empty for the session ID, and for the instance ID of an Audited.
	Key string
}

// DeadLetter sends the record of the event to the group's dead-letter topic.
type DeadLetter struct{ Reason string }

func (Emit) effect()       {}
func (DeadLetter) effect() {}

// Value is the value of an output record. Its type selects the topic.
type Value interface{ value() }

// The values of the output topics.
type (
	// AttemptAsked goes to peer-attempts: the sink sends a request to a peer.
	AttemptAsked topics.Delivery
	// Asked goes to peer-commands: the group tells itself how a task ended, so that one topic orders the ends of a task.
	Asked topics.PeerCommand
	// Replied goes to peer-replies.
	Replied topics.PeerReply
	// Audited goes to peer-events. Its InstanceID is the key.
	Audited topics.PeerAudit
	// CallbackAsked goes to peer-callbacks: package delivery sends the reply to a service.
	CallbackAsked topics.Output
	// ToolAnswered goes to the tool-use-result of an agent.
	ToolAnswered struct {
		Agent  string
		Result topics.ToolUseResult
	}
	// MessageSent goes to the message-input of an agent.
	MessageSent struct {
		Agent   string
		Message topics.Message
	}
	// TurnCancelled goes to the session-control of an agent.
	TurnCancelled struct {
		Agent   string
		Control topics.Control
	}
	// GateRequested goes to the gate-requests of an agent: it lists a request that outlives its run, or withdraws a gate.
	GateRequested struct {
		Agent   string
		Request topics.GateRequest
	}
	// GateDecided goes to the gate-decisions of an agent: a call was approved before.
	GateDecided struct {
		Agent    string
		Decision topics.GateDecision
	}
)

func (AttemptAsked) value()  {}
func (Asked) value()         {}
func (Replied) value()       {}
func (Audited) value()       {}
func (CallbackAsked) value() {}
func (ToolAnswered) value()  {}
func (MessageSent) value()   {}
func (TurnCancelled) value() {}
func (GateRequested) value() {}
func (GateDecided) value()   {}

func (t *transition) emit(id string, v Value) { t.effects = append(t.effects, Emit{ID: id, Value: v}) }

// emitTo writes a record for another row.
func (t *transition) emitTo(key, id string, v Value) {
	t.effects = append(t.effects, Emit{ID: id, Value: v, Key: key})
}

// deadLetter sends the record of the event to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, DeadLetter{Reason: reason})
}
