package fold

// The reasons of dead letters. Alerts may match these texts, so they do not change.
const (
	reasonTombstone = "fold: tombstone"
	reasonTurnID    = "fold: turn id is too long"
	reasonNotEvent  = "fold: event is no object, or nests too deep"
	reasonEventSize = "fold: event is too large"
	reasonTaken     = "fold: terminal record with the seq of another record"
	reasonMixed     = "fold: the turn has writers for its steps, and one for the whole"
	reasonWriter    = "fold: terminal record of a step: only the turn writes one"
	reasonClosed    = "fold: the turn has its batch, a newer attempt is too late"

	reasonBroken = "fold: the record cannot be applied"
)
