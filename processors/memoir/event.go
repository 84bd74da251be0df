package memoir

import "github.com/turntable-streams/turntable/topics"

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface {
	user() string
	apply(t *transition)
}

// record describes the record of an event. apply only reads it.
type record struct {
	// User is the memory key: the record's key and the key of the row.
	User string
	// Cause identifies the record, and is the same for every repeat of it (processors.Context.CauseID).
	Cause string
	// Partition and Offset are where the record was read.
	Partition int32
	Offset    int64
	// Value is the record's value; nil for a tombstone. apply may keep it in the row.
	Value []byte
}

func (r *record) user() string    { return r.User }
func (r *record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic except memoir-lookups, and one for deadlines.
type (
	// sessionEnded is a record of memoir-sessions.
	sessionEnded struct {
		*record
		Snapshot topics.MemoirSnapshot
	}
	// memoryWritten is a record of memoir-context.
	memoryWritten struct {
		*record
		Text string
		// Version is the header topics.HeaderMemoirVersion, empty if the record has none.
		Version string
	}
	// passFailed is a record of memoir-dlq.
	passFailed struct {
		*record
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct {
		User string
	}
)

func (d deadlineCame) user() string { return d.User }
