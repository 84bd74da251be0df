package memoir

// The reasons of dead letters.
const (
	reasonBroken     = "memoir: the user's row cannot be decoded; a tombstone on memoir-context deletes it"
	reasonTombstone  = "memoir: tombstone"
	reasonNoSession  = "memoir: the step has no session_id"
	reasonTooMany    = "memoir: given up: too many newer sessions of the user wait for a worker"
	reasonNoRoom     = "memoir: given up: the user's row has no room for the snapshot, which was sent once"
	reasonAbandoned  = "memoir: the memory is taken for that of a session that was given up"
	reasonTooLarge   = "memoir: the snapshot does not fit into a record"
	reasonMemorySize = "memoir: the memory is longer than the limit"
	reasonUnknown    = "memoir: no ended session of that ID waits for a memory"
	reasonForeign    = "memoir: a memory without a version was taken for the answer, and the snapshot is no longer kept"
	reasonVersion    = "memoir: the header turntable.memoir-version is invalid"
	reasonConflicts  = "memoir: given up: the memory changed, or an answer was missing, during every pass"
	reasonGivenUp    = "memoir: given up: "
	reasonLost       = "memoir: given up: the snapshot is missing in the row"
)

// Why a pass failed.
const (
	failedTimeout = "no memory came in time"
	failedWorker  = "the worker gave up"
	failedSize    = "its memory was longer than the limit"
)
