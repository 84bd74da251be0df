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
	Kind   PeerCommandKind `json:"kind"`
	TaskID string          `json:"task_id"`
	// Agent is the agent that runs the task: in a PeerRun only.
	Agent string `json:"agent,omitzero"`
	// PeerID is the dispatcher's label of the receiver, InboundID the receiver's label of the dispatcher's token. One of
	// them is empty.
	PeerID    string `json:"peer_id,omitzero"`
	InboundID string `json:"inbound_id,omitzero"`
	// Request is the body of POST /api/peer/delegate, of a PeerDelegate and a PeerRun, and Hash identifies it.
	Request Raw    `json:"request,omitzero" as:"object"`
	Hash    string `json:"hash,omitzero"`
	// Waiter identifies who waits for the task, empty if no request does.
	Waiter string `json:"waiter,omitzero"`
	// Detached tasks continue without waiters.
	Detached bool `json:"detached"`
	// Once limits a delegated task to one attempt.
	Once bool `json:"once"`
	// DeadlineMS is when the task is given up, in Unix milliseconds, 0 for the group's limit.
	DeadlineMS int64 `json:"deadline_ms"`
	// CallbackService and CallbackToken say where the reply is delivered to, empty for nowhere. The token is a secret.
	CallbackService string `json:"callback_service,omitzero"`
	CallbackToken   string `json:"callback_token,omitzero"`
	// Reply is the body of the reply, of a PeerEnd and a PeerSettle with one.
	Reply Raw `json:"reply,omitzero" as:"object"`
	// Code is the reason of a task that ended without a reply, HTTPStatus the status of the peer's response, 0 for none, and
	// Detail its text.
	Code         string `json:"code,omitzero"`
	HTTPStatus   int64  `json:"http_status"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Detail       string `json:"detail,omitzero"`
	// Answered says that the headers of a response had arrived.
	Answered bool `json:"answered"`
	// Approved says in a PeerClaimed that all of Gates are approved.
	Approved bool `json:"approved,omitzero"`
	// Gates are the gates of the calls in a PeerGrant, PeerRevoke, PeerClaim and PeerClaimed.
	Gates []PeerGate `json:"gates,omitempty"`
}

// PeerGate is the gate of a call that the task of a peer has made.
type PeerGate struct {
	GateID string `json:"gate_id"`
	// Call is the digest of the agent, the tool and the arguments. Empty in a PeerRevoke.
	Call string `json:"call,omitzero"`
	// By is who approved the call.
	By string `json:"by,omitzero"`
	// Granted says in a PeerClaimed that the call has a PeerGrant, which another call of the same claim lacks.
	Granted bool `json:"granted"`
}

var peerCommandWire = tagged(checkPeerCommand)

func checkPeerCommand(p *PeerCommand) error {
	switch {
	case p.Kind == "":
		return missing("kind")
	case p.TaskID == "":
		return missing("task_id")
	case (p.PeerID == "") == (p.InboundID == ""):
		return wrongType("peer_id and inbound_id", "want one of them")
	}
	return nil
}

func (g *PeerGate) check() error {
	if g.GateID == "" {
		return missing("gate_id")
	}
	return nil
}
