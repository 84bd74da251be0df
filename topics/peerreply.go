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
	TaskID string
	// PeerID is set for a delegated task, InboundID for the task of a peer.
	PeerID    string
	InboundID string
	// Waiter is who asked; empty if the reply is for everyone who waits for the task with this Hash.
	Waiter string
	State  PeerState
	Hash   string
	// Body is the body of the reply, nil if the task ended without one. The other members are those of PeerCommand.
	Body         Raw
	Code         string
	HTTPStatus   int64
	RetryAfterMS int64
	Detail       string
	Answered     bool
}

var peerReplyWire = wire[PeerReply]{depth: MaxDepth, read: readPeerReply, write: writePeerReply}

func readPeerReply(c *cursor, p *PeerReply) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "task_id":
			p.TaskID, err = c.word()
		case "peer_id":
			p.PeerID, err = c.word()
		case "inbound_id":
			p.InboundID, err = c.word()
		case "waiter":
			p.Waiter, err = c.word()
		case "state":
			p.State, err = readWord[PeerState](c)
		case "hash":
			p.Hash, err = c.word()
		case "body":
			p.Body, err = c.document()
		case "code":
			p.Code, err = c.word()
		case "http_status":
			p.HTTPStatus, err = c.integer(64)
		case "retry_after_ms":
			p.RetryAfterMS, err = c.integer(64)
		case "detail":
			p.Detail, err = c.word()
		case "answered":
			p.Answered, err = c.boolean()
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case p.State == "":
		return missing("state")
	case p.TaskID == "":
		return missing("task_id")
	case (p.PeerID == "") == (p.InboundID == ""):
		return wrongType("peer_id and inbound_id", "want one of them")
	}
	return nil
}

func writePeerReply(w *writer, p PeerReply) {
	w.grow(len(p.Body) + len(p.Detail))
	w.open()
	w.word("task_id", p.TaskID)
	w.some("peer_id", p.PeerID)
	w.some("inbound_id", p.InboundID)
	w.some("waiter", p.Waiter)
	w.word("state", string(p.State))
	w.some("hash", p.Hash)
	w.someRaw("body", p.Body)
	w.some("code", p.Code)
	w.integer("http_status", p.HTTPStatus)
	w.integer("retry_after_ms", p.RetryAfterMS)
	w.some("detail", p.Detail)
	w.boolean("answered", p.Answered)
	w.close()
}
