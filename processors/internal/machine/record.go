package machine

import (
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Record describes the record of an event. Its key is that of the row. Transitions only read it.
type Record struct {
	// ID identifies the record, also when it is read again (processors.Context.CauseID).
	ID string
	// Own reports whether the record has a turntable.id: a part of this module wrote it.
	Own bool
	// At is the record's timestamp. It may be missing or wrong, as its writer's clock.
	At time.Time
	// Topic, Partition and Offset are the record's coordinates.
	Topic     string
	Partition int32
	Offset    int64
	// Value is the record's value; nil for a tombstone.
	Value []byte
	// Headers are the record's headers.
	Headers goka.Headers
}

// RecordOf describes the record that a callback handles, with its undecoded value.
func RecordOf(c *processors.Context, raw []byte) *Record {
	_, own := c.Headers()[topics.HeaderID]
	return &Record{
		ID: c.CauseID(), Own: own, At: c.Timestamp(),
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), Value: raw, Headers: c.Headers(),
	}
}

// Tombstone reports whether the record has no value.
func (r *Record) Tombstone() bool { return r.Value == nil }
