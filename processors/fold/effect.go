package fold

import "github.com/turntable-streams/turntable/topics"

// Effect is an Emit, a DeadLetter, a PartWritten or a PartDeleted.
type Effect interface{ effect() }

// Emit writes a record of the session to an output topic.
type Emit struct {
	// Key is the session id.
	Key string
	// ID is the record's turntable.id. A repeated record has the same ID.
	ID string
	// Value is the record's value. Its type determines the topic.
	Value Value
}

// DeadLetter sends the current input record to the group's dead-letter topic.
type DeadLetter struct{ Reason string }

// PartWritten writes a part of the row, under a number that was not used before.
type PartWritten struct {
	Number uint32
	Value  []byte
}

// PartDeleted deletes a part that the row no longer refers to.
type PartDeleted struct{ Number uint32 }

func (Emit) effect()        {}
func (DeadLetter) effect()  {}
func (PartWritten) effect() {}
func (PartDeleted) effect() {}

// Value is the value of an output record: a BatchMessage, a thinkResponse, a thinkFailure or a gateRequest.
type Value interface{ value() }

// The values of the output topics.
type (
	// BatchMessage goes to batch-messages.
	BatchMessage topics.BatchMessage
	// thinkResponse goes to think-request-response.
	thinkResponse topics.ThinkResponse
	// thinkFailure goes to think-dlq.
	thinkFailure topics.ThinkFailure
	// gateRequest goes to gate-requests. The name of the agent is added when it is written.
	gateRequest topics.GateRequest
)

func (BatchMessage) value()  {}
func (thinkResponse) value() {}
func (thinkFailure) value()  {}
func (gateRequest) value()   {}

// deadLetter sends the current input record to the dead-letter topic.
func (s *transition) deadLetter(reason string) {
	s.effects = append(s.effects, DeadLetter{Reason: reason})
}
