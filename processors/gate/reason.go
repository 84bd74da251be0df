package gate

// The reasons of dead letters, in their error.reason header, beside those of View.Check.
const (
	reasonTombstone = "gate: tombstone"
	reasonSession   = "gate: its session_id is not its key"
	reasonLongID    = "gate: its id is too long"
	reasonConflict  = "gate: another request has this gate_id"
	reasonNoRequest = "gate: its request did not come"
	reasonNoRoom    = "gate: no room in the session's row"
	reasonTooLarge  = "gate: its value does not fit into a record"
	reasonBroken    = "gate: the record cannot be applied"
	reasonAgent     = "gate: its agent is not its key"
	reasonChannels  = "gate: decisions of channels are not enabled"
	reasonChannel   = "gate: the origin of the decision is invalid"
	reasonVerdict   = "gate: a channel cannot decide that"
	reasonGrantRoom = "gate: the agent has too many grants"
)

// The texts for people who decide on a channel and whose decision has no effect.
const (
	textNone       = "No request waits for an approval here."
	textUnknown    = "No open request has that code here. It may have been decided already, or have expired."
	textNotYours   = "Only the person whose message led to this request, or an approver, can decide about it."
	textNotShown   = "It cannot be approved here, because not all of it was shown. Read the whole request at the gate door, and approve it there."
	textNoProof    = "Nothing proves who has written this, so it decides nothing. Decide at the gate door."
	textNeedsCode  = "Repeat the command with the code that is in the question."
	textNotAllowed = "This request does not accept that decision."
	textWhich      = "Several requests wait here. Repeat the command with one of these codes:"
)

// The reasons of outcomes without a person's reason. The model reads them.
const (
	textAsks    = "a person would have been asked"
	textTooMany = "too many requests of the session wait for a decision"
	textInvalid = "the request cannot be decided: it is too large, its arguments are ambiguous or no valid JSON, or its schema cannot be used"
)
