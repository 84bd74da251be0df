package peer

import "github.com/turntable-streams/turntable/topics"

// effect is a record to write: an emit or a deadLetter.
type effect interface{ effect() }

// emit is a record for an output topic.
type emit struct {
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// value is the record's value. Its type selects the topic.
	Value value
	// Key is the record's key; empty for the session ID, and for the instance ID of an audited.
	Key string
}

// deadLetter sends the record of the event to the group's dead-letter topic.
type deadLetter struct{ Reason string }

func (emit) effect()       {}
func (deadLetter) effect() {}

// value is the value of an output record. Its type selects the topic.
type value interface{ value() }

// The values of the output topics.
type (
	// attemptAsked goes to peer-attempts: the sink sends a request to a peer.
	attemptAsked topics.Delivery
	// asked goes to peer-commands: the group tells itself how a task ended, so that one topic orders the ends of a task.
	asked topics.PeerCommand
	// replySent goes to peer-replies.
	replySent topics.PeerReply
	// audited goes to peer-events. Its InstanceID is the key.
	audited topics.PeerAudit
	// callbackAsked goes to peer-callbacks: package delivery sends the reply to a service.
	callbackAsked topics.Output
	// toolAnswered goes to the tool-use-result of an agent.
	toolAnswered struct {
		Agent  string
		Result topics.ToolUseResult
	}
	// messageSent goes to the message-input of an agent.
	messageSent struct {
		Agent   string
		Message topics.Message
	}
	// turnCancelled goes to the session-control of an agent.
	turnCancelled struct {
		Agent   string
		Control topics.Control
	}
	// gateRequested goes to the gate-requests of an agent: it lists a request that outlives its run, or withdraws a gate.
	gateRequested struct {
		Agent   string
		Request topics.GateRequest
	}
	// gateDecided goes to the gate-decisions of an agent: a call was approved before.
	gateDecided struct {
		Agent    string
		Decision topics.GateDecision
	}
)

func (attemptAsked) value()  {}
func (asked) value()         {}
func (replySent) value()     {}
func (audited) value()       {}
func (callbackAsked) value() {}
func (toolAnswered) value()  {}
func (messageSent) value()   {}
func (turnCancelled) value() {}
func (gateRequested) value() {}
func (gateDecided) value()   {}

func (t *transition) emit(id string, v value) { t.effects = append(t.effects, emit{ID: id, Value: v}) }

// emitTo writes a record for another row.
func (t *transition) emitTo(key, id string, v value) {
	t.effects = append(t.effects, emit{ID: id, Value: v, Key: key})
}

// deadLetter sends the record of the event to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, deadLetter{Reason: reason})
}
