package delegation

import "github.com/turntable-streams/turntable/topics"

// Effect is a record to write: an Emit or a DeadLetter.
type Effect interface{ effect() }

// Emit is a record for an output topic.
type Emit struct {
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// Key is the record's key, a session ID.
	Key string
	// Value is the record's value. Its type selects the topic.
	Value Value
}

// DeadLetter sends the record of the event to the group's dead-letter topic.
type DeadLetter struct{ Reason string }

func (Emit) effect()       {}
func (DeadLetter) effect() {}

// Value is the value of an output record. Its type selects the topic.
type Value interface{ value() }

// The values of the output topics.
type (
	// CallAnswered goes to tool-use-result.
	CallAnswered topics.ToolUseResult
	// StatusWritten goes to delegation-status.
	StatusWritten topics.Delegation
	// CallbackSent goes to message-input: it announces a result to the agent's session.
	CallbackSent topics.Message
	// PeerAsked goes to peer-commands.
	PeerAsked topics.PeerCommand
	// ReplySent goes to the delegation-replies of an agent: of the group's own, so that one topic orders the ends of a
	// delegation, or of the agent that delegated a task to it.
	ReplySent struct {
		Agent string
		Reply topics.DelegationReply
	}
	// TaskSent goes to the message-input of an agent.
	TaskSent struct {
		Agent   string
		Message topics.Message
	}
	// TaskCancelled goes to the session-control of an agent.
	TaskCancelled struct {
		Agent   string
		Control topics.Control
	}
)

func (CallAnswered) value()  {}
func (StatusWritten) value() {}
func (CallbackSent) value()  {}
func (PeerAsked) value()     {}
func (ReplySent) value()     {}
func (TaskSent) value()      {}
func (TaskCancelled) value() {}

// emit writes a record under the key of the session.
func (t *transition) emit(id string, v Value) { t.emitTo(t.key, id, v) }

func (t *transition) emitTo(key, id string, v Value) {
	t.effects = append(t.effects, Emit{ID: id, Key: key, Value: v})
}

// deadLetter sends the record of the event to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, DeadLetter{Reason: reason})
}
