package delivery

import (
	"strconv"

	"github.com/turntable-streams/turntable/topics"
)

// Effect is something to be done, as data: an Emit or a DeadLetter.
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

func (Emit) effect()       {}
func (DeadLetter) effect() {}

// Value is the value of an output record. Its type names the topic.
type Value interface{ value() }

// The output topics' values.
type (
	// Attempted goes to deliveries: a sink makes one attempt.
	Attempted topics.Delivery
	// Ended goes to delivery-receipts: the final receipt.
	Ended topics.Receipt
	// Buried goes to delivery-dlq.
	Buried topics.DeadDelivery
	// RouteRemoved is a tombstone on reply-to.
	RouteRemoved struct{}
)

func (Attempted) value()    {}
func (Ended) value()        {}
func (Buried) value()       {}
func (RouteRemoved) value() {}

func (s *session) emit(d *Delivery, kind string, number uint32, v Value) {
	id := d.Id + "/" + kind + "/" + strconv.FormatUint(uint64(number), 10)
	s.effects = append(s.effects, Emit{Key: s.key, ID: id, Value: v})
}

// refuse sends the record that is being applied to the dead-letter topic.
func (s *session) refuse(reason string) {
	s.effects = append(s.effects, DeadLetter{Reason: reason})
}
