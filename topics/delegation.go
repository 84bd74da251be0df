package topics

// DelegationStatus is how a delegation is, or how it ended.
type DelegationStatus string

// The statuses of a delegation.
const (
	DelegationOpen      DelegationStatus = "open"
	DelegationCompleted DelegationStatus = "completed"
	DelegationFailed    DelegationStatus = "failed"
	DelegationTimedOut  DelegationStatus = "timed_out"
	DelegationCancelled DelegationStatus = "cancelled"
)

// DelegationTask is the member MetaTask of the message of a delegated task: who waits for its output.
type DelegationTask struct {
	// Agent and SessionID are those of the caller, and CallbackID is the caller's ID of the delegation.
	Agent      string `json:"agent"`
	SessionID  string `json:"session_id"`
	CallbackID string `json:"callback_id"`
	// Depth is how many delegations led to the task, from 1.
	Depth int64 `json:"depth" as:"int32"`
}

// DelegationNote is the member MetaResult of the message that returns the result of a delegation to the agent that started it.
type DelegationNote struct {
	CallbackID string           `json:"callback_id"`
	Status     DelegationStatus `json:"status"`
	// Sender is "hand:" and the ID of the agent that ran the task. Name is that ID, for display.
	Sender string `json:"sender"`
	Name   string `json:"name"`
	Depth  int64  `json:"depth" as:"int32"`
}

// DelegationReply is the value of {agent}-delegation-replies: how a delegated task ended, or that it is to be ended. The group
// of package processors/delegation reads it, and the first one of a delegation counts.
type DelegationReply struct {
	SessionID  string           `json:"session_id"`
	CallbackID string           `json:"callback_id"`
	Status     DelegationStatus `json:"status"` // not DelegationOpen
	// Content is the text of a completed task, else what went wrong.
	Content string `json:"content"`
	// Code is the error code of a failed task, or empty.
	Code string `json:"code,omitzero"`
	// CallID is the tool_use_id of the call that cancels the delegation, and that is told how it ended, or empty. The other
	// fields are those of that call.
	CallID     string `json:"call_id,omitzero"`
	ToolID     string `json:"tool_id,omitzero"`
	TotalTools int64  `json:"total_tools" as:"int32" with:"CallID"`
	// CallKey is the turntable.id of the cancelling call's record, or empty.
	CallKey string `json:"call_key,omitzero"`
	AtMS    int64  `json:"at_ms"` // Unix milliseconds
}

// Delegation is the value of {agent}-delegation-status: a delegation when it began and when it ended. The second record
// has the result in full, and is the one to read.
type Delegation struct {
	SessionID  string `json:"session_id"`
	CallbackID string `json:"callback_id"`
	// Agent started the delegation, and Target was asked to run the task: the name of an agent, or "peer:" and the ID of a peer.
	Agent  string           `json:"agent"`
	Target string           `json:"target"`
	Status DelegationStatus `json:"status"`
	// Result is the text of a completed task, and Error what went wrong with another. Both are empty while it is open.
	Result string `json:"result,omitzero"`
	Error  string `json:"error,omitzero"`
	Code   string `json:"code,omitzero"`
	Depth  int64  `json:"depth" as:"int32"`
	// Channel says where the result is announced: the channel of the origin, empty if there is none.
	Channel    string `json:"channel,omitzero"`
	StartedMS  int64  `json:"started_ms"` // Unix milliseconds
	DeadlineMS int64  `json:"deadline_ms"`
	EndedMS    int64  `json:"ended_ms"` // 0 while it is open
}

var (
	delegationReplyWire = tagged(checkDelegationReply)
	delegationWire      = tagged(checkDelegation)
	delegationTaskWire  = tagged(checkDelegationTask)
	delegationNoteWire  = tagged(checkDelegationNote)
)

func checkDelegationReply(r *DelegationReply) error {
	switch {
	case r.SessionID == "":
		return missing("session_id")
	case r.CallbackID == "":
		return missing("callback_id")
	}
	switch r.Status {
	case DelegationCompleted, DelegationFailed, DelegationTimedOut, DelegationCancelled:
		return nil
	default:
		return wrongType("status", "none of completed, failed, timed_out and cancelled")
	}
}

func checkDelegation(d *Delegation) error {
	switch {
	case d.SessionID == "":
		return missing("session_id")
	case d.CallbackID == "":
		return missing("callback_id")
	case d.Status == "":
		return missing("status")
	}
	return nil
}

func checkDelegationTask(t *DelegationTask) error {
	if t.Agent == "" || t.SessionID == "" || t.CallbackID == "" || t.Depth < 1 {
		return missing("agent, session_id, callback_id or depth")
	}
	return nil
}

func checkDelegationNote(n *DelegationNote) error {
	if n.CallbackID == "" || n.Sender == "" {
		return missing("callback_id or sender")
	}
	return nil
}

// DecodeDelegationTask reads the member MetaTask. The error does not quote it.
func DecodeDelegationTask(raw Raw) (DelegationTask, error) { return delegationTaskWire.part(raw) }

// EncodeDelegationTask writes the member MetaTask.
func EncodeDelegationTask(t DelegationTask) Raw { return encode(t, delegationTaskWire.write) }

// DecodeDelegationNote reads the member MetaResult. The error does not quote it.
func DecodeDelegationNote(raw Raw) (DelegationNote, error) { return delegationNoteWire.part(raw) }

// EncodeDelegationNote writes the member MetaResult.
func EncodeDelegationNote(n DelegationNote) Raw { return encode(n, delegationNoteWire.write) }
