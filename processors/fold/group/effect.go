package group

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

// Value is the value of an output record: a BatchMessage, a ThinkResponse, a ThinkFailure or a GateRequest.
type Value interface{ value() }

// The values of the output topics.
type (
	// BatchMessage goes to batch-messages.
	BatchMessage topics.BatchMessage
	// ThinkResponse goes to think-request-response.
	ThinkResponse topics.ThinkResponse
	// ThinkFailure goes to think-dlq.
	ThinkFailure topics.ThinkFailure
	// GateRequest goes to gate-requests. The name of the agent is added when it is written.
	GateRequest topics.GateRequest
)

func (BatchMessage) value()  {}
func (ThinkResponse) value() {}
func (ThinkFailure) value()  {}
func (GateRequest) value()   {}

// deadLetter sends the current input record to the dead-letter topic.
func (s *transition) deadLetter(reason string) {
	s.effects = append(s.effects, DeadLetter{Reason: reason})
}
