package peer

// The reasons of dead letters.
const (
	reasonBroken    = "peer: the session's row cannot be decoded; a purge of the session deletes it"
	reasonCommand   = "peer: command of an unknown kind"
	reasonCall      = "peer: the call has no tool_use_id"
	reasonApprovals = "peer: the token's label has too many approvals"
	reasonRequest   = "peer: the request cannot be read"
)
