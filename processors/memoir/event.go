package memoir

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface{ apply(t *transition) }

// The events: one for each input topic except memoir-lookups, and one for deadlines.
type (
	// sessionEnded is a record of memoir-sessions.
	sessionEnded struct {
		*machine.Record
		Snapshot topics.MemoirSnapshot
	}
	// memoryWritten is a record of memoir-context.
	memoryWritten struct {
		*machine.Record
		Text string
		// Version is the header topics.HeaderMemoirVersion, empty if the record has none.
		Version string
	}
	// passFailed is a record of memoir-dlq.
	passFailed struct{ *machine.Record }
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed. The inputs have been read through read; the
	// zero time is now.
	deadlineCame struct{ read time.Time }
)
