package fold

import "github.com/turntable-streams/turntable/topics"

// effect is an emit, a deadLetter, a partWritten or a partDeleted.
type effect interface{ effect() }

// emit writes a record of the session to an output topic.
type emit struct {
	// Key is the session id.
	Key string
	// ID is the record's turntable.id. A repeated record has the same ID.
	ID string
	// Value is the record's value. Its type determines the topic.
	Value value
}

// deadLetter sends the current input record to the group's dead-letter topic.
type deadLetter struct{ Reason string }

// partWritten writes a part of the row, under a number that was not used before.
type partWritten struct {
	Number uint32
	Value  []byte
}

// partDeleted deletes a part that the row no longer refers to.
type partDeleted struct{ Number uint32 }

func (emit) effect()        {}
func (deadLetter) effect()  {}
func (partWritten) effect() {}
func (partDeleted) effect() {}

// value is the value of an output record: a batchMessage, a thinkResponse, a thinkFailure or a gateRequest.
type value interface{ value() }

// The values of the output topics.
type (
	// batchMessage goes to batch-messages.
	batchMessage topics.BatchMessage
	// thinkResponse goes to think-request-response.
	thinkResponse topics.ThinkResponse
	// thinkFailure goes to think-dlq.
	thinkFailure topics.ThinkFailure
	// gateRequest goes to gate-requests. The name of the agent is added when it is written.
	gateRequest topics.GateRequest
)

func (batchMessage) value()  {}
func (thinkResponse) value() {}
func (thinkFailure) value()  {}
func (gateRequest) value()   {}

// deadLetter sends the current input record to the dead-letter topic.
func (s *transition) deadLetter(reason string) {
	s.effects = append(s.effects, deadLetter{Reason: reason})
}
