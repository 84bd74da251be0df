package delivery

import (
	"strconv"

	"github.com/turntable-streams/turntable/topics"
)

// effect is a record to write: an emit or a deadLetter.
type effect interface{ effect() }

// emit is a record of the session for an output topic.
type emit struct {
	// Key is the session ID.
	Key string
	// ID is the record's turntable.id header. It is the same if the record is written again.
	ID string
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
	// attemptRequested goes to deliveries: a sink makes one attempt.
	attemptRequested topics.Delivery
	// finalReceipt goes to delivery-receipts.
	finalReceipt topics.Receipt
	// deliveryDead goes to delivery-dlq.
	deliveryDead topics.DeadDelivery
	// routeRemoved is a tombstone on reply-to.
	routeRemoved struct{}
)

func (attemptRequested) value() {}
func (finalReceipt) value()     {}
func (deliveryDead) value()     {}
func (routeRemoved) value()     {}

// emit emits a record about what has an ID: a delivery or a reply route.
func (t *transition) emit(about, kind string, number uint32, v value) {
	id := about + "/" + kind + "/" + strconv.FormatUint(uint64(number), 10)
	t.effects = append(t.effects, emit{Key: t.key, ID: id, Value: v})
}

// deadLetter sends the event's record to the dead-letter topic.
func (t *transition) deadLetter(reason string) {
	t.effects = append(t.effects, deadLetter{Reason: reason})
}
