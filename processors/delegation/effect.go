package delegation

import "github.com/turntable-streams/turntable/topics"

// effect is a record to write: an emit or a deadLetter.
type effect interface{ effect() }

// emit is a record for an output topic.
type emit struct {
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
	// Key is the record's key, a session ID.
	Key string
	// Value is the record's value. Its type selects the topic.
	Value value
}

// deadLetter sends the record of the event to the group's dead-letter topic.
type deadLetter struct{ Reason string }

func (emit) effect()       {}
func (deadLetter) effect() {}

// value is the value of an output record. Its type selects the topic.
type value interface{ value() }

// The values of the output topics.
type (
	// callAnswered goes to tool-use-result.
	callAnswered topics.ToolUseResult
	// statusWritten goes to delegation-status.
	statusWritten topics.Delegation
	// callbackSent goes to message-input: it announces a result to the agent's session.
	callbackSent topics.Message
	// peerAsked goes to peer-commands.
	peerAsked topics.PeerCommand
	// replySent goes to the delegation-replies of an agent: of the group's own, so that one topic orders the ends of a
	// delegation, or of the agent that delegated a task to it.
	replySent struct {
		Agent string
		Reply topics.DelegationReply
	}
	// taskSent goes to the message-input of an agent.
	taskSent struct {
		Agent   string
		Message topics.Message
	}
	// taskCancelled goes to the session-control of an agent.
	taskCancelled struct {
		Agent   string
		Control topics.Control
	}
)

func (callAnswered) value()  {}
func (statusWritten) value() {}
func (callbackSent) value()  {}
func (peerAsked) value()     {}
func (replySent) value()     {}
func (taskSent) value()      {}
func (taskCancelled) value() {}

// emit writes a record under the key of the session.
func (t *transition) emit(id string, v value) { t.emitTo(t.key, id, v) }

func (t *transition) emitTo(key, id string, v value) {
	t.effects = append(t.effects, emit{ID: id, Key: key, Value: v})
}

// deadLetter sends the record of the event to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, deadLetter{Reason: reason})
}
