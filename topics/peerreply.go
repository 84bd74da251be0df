package topics

// PeerState is how a task is.
type PeerState string

// The states of a task.
const (
	// PeerRunning: the task has not ended.
	PeerRunning PeerState = "running"
	// PeerDone: the task has ended. There is a Body, or a Code.
	PeerDone PeerState = "done"
	// PeerConflict: the task ID belongs to a task with another request. The task is not accepted.
	PeerConflict PeerState = "conflict"
	// PeerUnknown: there is no such task, or it is forgotten.
	PeerUnknown PeerState = "unknown"
	// PeerNoRoom: the session's row has no room for the task. It is not accepted.
	PeerNoRoom PeerState = "no_room"
)

// PeerReply is the value of {agent}-peer-replies: how a task is, for the doors whose callers wait for it. There is at least
// one when a task ends.
type PeerReply struct {
	TaskID string `json:"task_id"`
	// PeerID is set for a delegated task, InboundID for the task of a peer.
	PeerID    string `json:"peer_id,omitzero"`
	InboundID string `json:"inbound_id,omitzero"`
	// Waiter is who asked; empty if the reply is for everyone who waits for the task with this Hash.
	Waiter string    `json:"waiter,omitzero"`
	State  PeerState `json:"state"`
	Hash   string    `json:"hash,omitzero"`
	// Body is the body of the reply, nil if the task ended without one. The other members are those of PeerCommand.
	Body         Raw    `json:"body,omitzero" as:"object"`
	Code         string `json:"code,omitzero"`
	HTTPStatus   int64  `json:"http_status"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Detail       string `json:"detail,omitzero"`
	Answered     bool   `json:"answered"`
}

var peerReplyWire = tagged(checkPeerReply)

func checkPeerReply(p *PeerReply) error {
	switch {
	case p.State == "":
		return missing("state")
	case p.TaskID == "":
		return missing("task_id")
	case (p.PeerID == "") == (p.InboundID == ""):
		return wrongType("peer_id and inbound_id", "want one of them")
	}
	return nil
}
