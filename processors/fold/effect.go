package fold

import "github.com/turntable-streams/turntable/topics"

// Effect is something to be done, as data: an Emit, a DeadLetter, a PartWritten or a PartGone.
type Effect interface{ effect() }

// Emit writes a record of the session to an output topic.
type Emit struct {
	// Key is the session id.
	Key string
	// ID is the record's turntable.id: the same at every repeat.
	ID string
	// Value says which topic: see Value.
	Value Value
}

// DeadLetter sends the record that is being applied to the group's dead-letter topic.
type DeadLetter struct{ Reason string }

// PartWritten writes a part of the row. Its number was never used before.
type PartWritten struct {
	Number uint32
	Value  []byte
}

// PartGone removes a part that the row named and does not name any more.
type PartGone struct{ Number uint32 }

func (Emit) effect()        {}
func (DeadLetter) effect()  {}
func (PartWritten) effect() {}
func (PartGone) effect()    {}

// Value is the value of an output record. Its type names the topic.
type Value interface{ value() }

// The output topics' values.
type (
	// Folded goes to batch-messages.
	Folded topics.BatchMessage
	// Thought goes to think-request-response.
	Thought topics.ThinkResponse
	// Unthought goes to think-dlq.
	Unthought topics.ThinkFailure
)

func (Folded) value()    {}
func (Thought) value()   {}
func (Unthought) value() {}

// refuse sends the record that is being applied to the dead-letter topic.
func (s *session) refuse(reason string) {
	s.effects = append(s.effects, DeadLetter{Reason: reason})
}
