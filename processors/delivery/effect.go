package delivery

import (
	"strconv"

	"github.com/turntable-streams/turntable/topics"
)

// Effect is a record to write: an Emit or a DeadLetter.
type Effect interface{ effect() }

// Emit is a record of the session for an output topic.
type Emit struct {
	// Key is the session ID.
	Key string
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
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
	// AttemptRequested goes to deliveries: a sink makes one attempt.
	AttemptRequested topics.Delivery
	// FinalReceipt goes to delivery-receipts.
	FinalReceipt topics.Receipt
	// DeliveryDead goes to delivery-dlq.
	DeliveryDead topics.DeadDelivery
	// RouteRemoved is a tombstone on reply-to.
	RouteRemoved struct{}
)

func (AttemptRequested) value() {}
func (FinalReceipt) value()     {}
func (DeliveryDead) value()     {}
func (RouteRemoved) value()     {}

// emit emits a record about what has an ID: a delivery or a reply route.
func (t *transition) emit(about, kind string, number uint32, v Value) {
	id := about + "/" + kind + "/" + strconv.FormatUint(uint64(number), 10)
	t.effects = append(t.effects, Emit{Key: t.key, ID: id, Value: v})
}

// deadLetter sends the event's record to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, DeadLetter{Reason: reason})
}
