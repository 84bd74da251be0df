package memoir

import "github.com/turntable-streams/turntable/topics"

// effect is a record to write: a snapshotSent, a deadLetter or a snapshotDead.
type effect interface{ effect() }

type (
	// snapshotSent goes to memoir-context-session-end: a pass for a worker.
	snapshotSent struct {
		// Key is the memory key.
		Key string
		// ID is the record's turntable.id header. It is the same if the record is written again.
		ID string
		// Version is the version of the memory in Snapshot.
		Version uint64
		// DueMs is when the pass fails without an answer, in milliseconds since the epoch.
		DueMs int64
		// Snapshot is the ended session with the memory of its user.
		Snapshot topics.MemoirSnapshot
	}
	// deadLetter sends the record of the event to the group's dead-letter topic.
	deadLetter struct{ Reason string }
	// snapshotDead sends an ended session, as it was read from memoir-sessions, to the group's dead-letter topic. Its content
	// is not in the memory.
	snapshotDead struct {
		End       string
		Partition int32
		Offset    int64
		Value     []byte
		Reason    string
	}
)

func (snapshotSent) effect() {}
func (deadLetter) effect()   {}
func (snapshotDead) effect() {}
