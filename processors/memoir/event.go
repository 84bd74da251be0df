package memoir

import "github.com/turntable-streams/turntable/topics"

// Event is an input of Apply: a record of an input topic, or a deadline of the row.
type Event interface {
	user() string
	apply(t *transition)
}

// Record describes the record of an event. Apply only reads it.
type Record struct {
	// User is the memory key: the record's key and the key of the row.
	User string
	// Cause identifies the record, and is the same for every repeat of it (processors.Context.CauseID).
	Cause string
	// Partition and Offset are where the record was read.
	Partition int32
	Offset    int64
	// Value is the record's value; nil for a tombstone. Apply may keep it in the row.
	Value []byte
}

func (r *Record) user() string    { return r.User }
func (r *Record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic except memoir-lookups, and one for deadlines.
type (
	// SessionEnded is a record of memoir-sessions.
	SessionEnded struct {
		*Record
		Snapshot topics.MemoirSnapshot
	}
	// MemoryWritten is a record of memoir-context.
	MemoryWritten struct {
		*Record
		Text string
		// Version is the header topics.HeaderMemoirVersion, empty if the record has none.
		Version string
	}
	// PassFailed is a record of memoir-dlq.
	PassFailed struct {
		*Record
	}
	// DeadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	DeadlineCame struct {
		User string
	}
)

func (d DeadlineCame) user() string { return d.User }
