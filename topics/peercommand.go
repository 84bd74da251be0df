package topics

// PeerCommandKind says what a PeerCommand asks for.
type PeerCommandKind string

// The kinds of commands. Those about a delegated task have a PeerID, those about the task of a peer an InboundID.
const (
	// PeerDelegate: send a task to a peer.
	PeerDelegate PeerCommandKind = "delegate"
	// PeerSettle: a delegated task has ended. The group writes it, and the first one counts.
	PeerSettle PeerCommandKind = "settle"
	// PeerRun: run the task of a peer.
	PeerRun PeerCommandKind = "run"
	// PeerAsk: say how a task is. The answer is a PeerReply for Waiter.
	PeerAsk PeerCommandKind = "ask"
	// PeerLeave: Waiter no longer waits. A task without waiters is cancelled, unless it is Detached.
	PeerLeave PeerCommandKind = "leave"
	// PeerCancel: the task is no longer wanted.
	PeerCancel PeerCommandKind = "cancel"
	// PeerEnd: the run of a peer's task has ended. The group writes it, and the first one counts.
	PeerEnd PeerCommandKind = "end"

	// The group writes the other kinds to itself. PeerGrant, PeerRevoke and PeerClaim are keyed by the label of the token, so that
	// one partition orders the approvals that a peer may use.

	// PeerGrant: a person has approved the call of a rejected task. The peer may run such a call once, until DeadlineMS.
	PeerGrant PeerCommandKind = "grant"
	// PeerRevoke: the approval of a call is no longer wanted.
	PeerRevoke PeerCommandKind = "revoke"
	// PeerClaim: the calls of a run wait for approval. All of Gates are approved if there is a PeerGrant for each, else none.
	PeerClaim PeerCommandKind = "claim"
	// PeerClaimed answers a PeerClaim.
	PeerClaimed PeerCommandKind = "claimed"
)

// PeerCommand is the value of {agent}-peer-commands: what a door asks of the group of package processors/peer, and what the
// group writes to itself, so that the order of one topic decides how a task ends.
type PeerCommand struct {
	Kind   PeerCommandKind
	TaskID string
	// Agent is the agent that runs the task: in a PeerRun only.
	Agent string
	// PeerID is the dispatcher's label of the receiver, InboundID the receiver's label of the dispatcher's token. One of
	// them is empty.
	PeerID    string
	InboundID string
	// Request is the body of POST /api/peer/delegate, of a PeerDelegate and a PeerRun, and Hash identifies it.
	Request Raw
	Hash    string
	// Waiter identifies who waits for the task, empty if no request does.
	Waiter string
	// Detached tasks continue without waiters.
	Detached bool
	// Once limits a delegated task to one attempt.
	Once bool
	// DeadlineMS is when the task is given up, in Unix milliseconds, 0 for the group's limit.
	DeadlineMS int64
	// CallbackService and CallbackToken say where the reply is delivered to, empty for nowhere. The token is a secret.
	CallbackService string
	CallbackToken   string
	// Reply is the body of the reply, of a PeerEnd and a PeerSettle with one.
	Reply Raw
	// Code is the reason of a task that ended without a reply, HTTPStatus the status of the peer's response, 0 for none, and
	// Detail its text.
	Code         string
	HTTPStatus   int64
	RetryAfterMS int64
	Detail       string
	// Answered says that the headers of a response had arrived.
	Answered bool
	// Approved says in a PeerClaimed that all of Gates are approved.
	Approved bool
	// Gates are the gates of the calls in a PeerGrant, PeerRevoke, PeerClaim and PeerClaimed.
	Gates []PeerGate
}

// PeerGate is the gate of a call that the task of a peer has made.
type PeerGate struct {
	GateID string
	// Call is the digest of the agent, the tool and the arguments. Empty in a PeerRevoke.
	Call string
	// By is who approved the call.
	By string
	// Granted says in a PeerClaimed that the call has a PeerGrant, which another call of the same claim lacks.
	Granted bool
}

var peerCommandWire = wire[PeerCommand]{depth: MaxDepth, read: readPeerCommand, write: writePeerCommand}

func readPeerCommand(c *cursor, p *PeerCommand) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "kind":
			p.Kind, err = readWord[PeerCommandKind](c)
		case "task_id":
			p.TaskID, err = c.word()
		case "agent":
			p.Agent, err = c.word()
		case "peer_id":
			p.PeerID, err = c.word()
		case "inbound_id":
			p.InboundID, err = c.word()
		case "request":
			p.Request, err = c.document()
		case "hash":
			p.Hash, err = c.word()
		case "waiter":
			p.Waiter, err = c.word()
		case "detached":
			p.Detached, err = c.boolean()
		case "once":
			p.Once, err = c.boolean()
		case "deadline_ms":
			p.DeadlineMS, err = c.integer(64)
		case "callback_service":
			p.CallbackService, err = c.word()
		case "callback_token":
			p.CallbackToken, err = c.word()
		case "reply":
			p.Reply, err = c.document()
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
		case "approved":
			p.Approved, err = c.boolean()
		case "gates":
			if p.Gates, _, err = readList(c, readPeerGate); len(p.Gates) == 0 {
				p.Gates = nil
			}
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case p.Kind == "":
		return missing("kind")
	case p.TaskID == "":
		return missing("task_id")
	case (p.PeerID == "") == (p.InboundID == ""):
		return wrongType("peer_id and inbound_id", "want one of them")
	}
	return nil
}

func writePeerCommand(w *writer, p PeerCommand) {
	w.grow(len(p.Request) + len(p.Reply) + len(p.Detail))
	w.open()
	w.word("kind", string(p.Kind))
	w.word("task_id", p.TaskID)
	w.some("agent", p.Agent)
	w.some("peer_id", p.PeerID)
	w.some("inbound_id", p.InboundID)
	w.someRaw("request", p.Request)
	w.some("hash", p.Hash)
	w.some("waiter", p.Waiter)
	w.boolean("detached", p.Detached)
	w.boolean("once", p.Once)
	w.integer("deadline_ms", p.DeadlineMS)
	w.some("callback_service", p.CallbackService)
	w.some("callback_token", p.CallbackToken)
	w.someRaw("reply", p.Reply)
	w.some("code", p.Code)
	w.integer("http_status", p.HTTPStatus)
	w.integer("retry_after_ms", p.RetryAfterMS)
	w.some("detail", p.Detail)
	w.boolean("answered", p.Answered)
	if p.Approved {
		w.boolean("approved", true)
	}
	if len(p.Gates) > 0 {
		writeList(w, "gates", p.Gates, writePeerGate)
	}
	w.close()
}

func readPeerGate(c *cursor, g *PeerGate) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "gate_id":
			g.GateID, err = c.word()
		case "call":
			g.Call, err = c.word()
		case "by":
			g.By, err = c.word()
		case "granted":
			g.Granted, err = c.boolean()
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && g.GateID == "" {
		return missing("gate_id")
	}
	return err
}

func writePeerGate(w *writer, g PeerGate) {
	w.open()
	w.word("gate_id", g.GateID)
	w.some("call", g.Call)
	w.some("by", g.By)
	w.boolean("granted", g.Granted)
	w.close()
}
