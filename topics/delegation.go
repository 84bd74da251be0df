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
	Agent      string
	SessionID  string
	CallbackID string
	// Depth is how many delegations led to the task, from 1.
	Depth int64
}

// DelegationNote is the member MetaResult of the message that returns the result of a delegation to the agent that started it.
type DelegationNote struct {
	CallbackID string
	Status     DelegationStatus
	// Sender is "hand:" and the ID of the agent that ran the task. Name is that ID, for display.
	Sender string
	Name   string
	Depth  int64
}

// DelegationReply is the value of {agent}-delegation-replies: how a delegated task ended, or that it is to be ended. The group
// of package processors/delegation reads it, and the first one of a delegation counts.
type DelegationReply struct {
	SessionID  string
	CallbackID string
	Status     DelegationStatus // not DelegationOpen
	// Content is the text of a completed task, else what went wrong.
	Content string
	// Code is the error code of a failed task, or empty.
	Code string
	// CallID is the tool_use_id of the call that cancels the delegation, and that is told how it ended, or empty. The other
	// fields are those of that call.
	CallID     string
	ToolID     string
	TotalTools int64
	// CallKey is the turntable.id of the cancelling call's record, or empty.
	CallKey string
	AtMS    int64 // Unix milliseconds
}

// Delegation is the value of {agent}-delegation-status: a delegation when it began and when it ended. The second record
// has the result in full, and is the one to read.
type Delegation struct {
	SessionID  string
	CallbackID string
	// Agent started the delegation, and Target was asked to run the task: the name of an agent, or "peer:" and the ID of a peer.
	Agent  string
	Target string
	Status DelegationStatus
	// Result is the text of a completed task, and Error what went wrong with another. Both are empty while it is open.
	Result string
	Error  string
	Code   string
	Depth  int64
	// Channel says where the result is announced: the channel of the origin, empty if there is none.
	Channel    string
	StartedMS  int64 // Unix milliseconds
	DeadlineMS int64
	EndedMS    int64 // 0 while it is open
}

var (
	delegationReplyWire = wire[DelegationReply]{depth: MaxDepth, read: readDelegationReply, write: writeDelegationReply}
	delegationWire      = wire[Delegation]{depth: MaxDepth, read: readDelegation, write: writeDelegation}
)

func readDelegationReply(c *cursor, r *DelegationReply) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			r.SessionID, err = c.word()
		case "callback_id":
			r.CallbackID, err = c.word()
		case "status":
			r.Status, err = readWord[DelegationStatus](c)
		case "content":
			r.Content, err = c.word()
		case "code":
			r.Code, err = c.word()
		case "call_id":
			r.CallID, err = c.word()
		case "tool_id":
			r.ToolID, err = c.word()
		case "total_tools":
			r.TotalTools, err = c.integer(32)
		case "call_key":
			r.CallKey, err = c.word()
		case "at_ms":
			r.AtMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
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

func writeDelegationReply(w *writer, r DelegationReply) {
	w.grow(len(r.Content))
	w.open()
	w.word("session_id", r.SessionID)
	w.word("callback_id", r.CallbackID)
	w.word("status", string(r.Status))
	w.word("content", r.Content)
	w.some("code", r.Code)
	w.some("call_id", r.CallID)
	w.some("tool_id", r.ToolID)
	if r.CallID != "" {
		w.integer("total_tools", r.TotalTools)
	}
	w.some("call_key", r.CallKey)
	w.integer("at_ms", r.AtMS)
	w.close()
}

func readDelegation(c *cursor, d *Delegation) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			d.SessionID, err = c.word()
		case "callback_id":
			d.CallbackID, err = c.word()
		case "agent":
			d.Agent, err = c.word()
		case "target":
			d.Target, err = c.word()
		case "status":
			d.Status, err = readWord[DelegationStatus](c)
		case "result":
			d.Result, err = c.word()
		case "error":
			d.Error, err = c.word()
		case "code":
			d.Code, err = c.word()
		case "depth":
			d.Depth, err = c.integer(32)
		case "channel":
			d.Channel, err = c.word()
		case "started_ms":
			d.StartedMS, err = c.integer(64)
		case "deadline_ms":
			d.DeadlineMS, err = c.integer(64)
		case "ended_ms":
			d.EndedMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case d.SessionID == "":
		return missing("session_id")
	case d.CallbackID == "":
		return missing("callback_id")
	case d.Status == "":
		return missing("status")
	}
	return nil
}

func writeDelegation(w *writer, d Delegation) {
	w.grow(len(d.Result) + len(d.Error))
	w.open()
	w.word("session_id", d.SessionID)
	w.word("callback_id", d.CallbackID)
	w.word("agent", d.Agent)
	w.word("target", d.Target)
	w.word("status", string(d.Status))
	w.some("result", d.Result)
	w.some("error", d.Error)
	w.some("code", d.Code)
	w.integer("depth", d.Depth)
	w.some("channel", d.Channel)
	w.integer("started_ms", d.StartedMS)
	w.integer("deadline_ms", d.DeadlineMS)
	w.integer("ended_ms", d.EndedMS)
	w.close()
}

// DecodeDelegationTask reads the member MetaTask. The error does not quote it.
func DecodeDelegationTask(raw Raw) (t DelegationTask, err error) {
	if raw == nil {
		return t, ErrNull
	}
	err = read(raw, MaxDepth, func(c *cursor) error {
		t = DelegationTask{}
		return c.record(func(name []byte) (err error) {
			switch string(name) {
			case "agent":
				t.Agent, err = c.word()
			case "session_id":
				t.SessionID, err = c.word()
			case "callback_id":
				t.CallbackID, err = c.word()
			case "depth":
				t.Depth, err = c.integer(32)
			default:
				err = c.skip()
			}
			return err
		})
	})
	switch {
	case err != nil:
		return DelegationTask{}, err
	case t.Agent == "" || t.SessionID == "" || t.CallbackID == "" || t.Depth < 1:
		return DelegationTask{}, missing("agent, session_id, callback_id or depth")
	}
	return t, nil
}

// EncodeDelegationTask writes the member MetaTask.
func EncodeDelegationTask(t DelegationTask) Raw {
	return encode(t, func(w *writer, t DelegationTask) {
		w.open()
		w.word("agent", t.Agent)
		w.word("session_id", t.SessionID)
		w.word("callback_id", t.CallbackID)
		w.integer("depth", t.Depth)
		w.close()
	})
}

// DecodeDelegationNote reads the member MetaResult. The error does not quote it.
func DecodeDelegationNote(raw Raw) (n DelegationNote, err error) {
	if raw == nil {
		return n, ErrNull
	}
	err = read(raw, MaxDepth, func(c *cursor) error {
		n = DelegationNote{}
		return c.record(func(name []byte) (err error) {
			switch string(name) {
			case "callback_id":
				n.CallbackID, err = c.word()
			case "status":
				n.Status, err = readWord[DelegationStatus](c)
			case "sender":
				n.Sender, err = c.word()
			case "name":
				n.Name, err = c.word()
			case "depth":
				n.Depth, err = c.integer(32)
			default:
				err = c.skip()
			}
			return err
		})
	})
	switch {
	case err != nil:
		return DelegationNote{}, err
	case n.CallbackID == "" || n.Sender == "":
		return DelegationNote{}, missing("callback_id or sender")
	}
	return n, nil
}

// EncodeDelegationNote writes the member MetaResult.
func EncodeDelegationNote(n DelegationNote) Raw {
	return encode(n, func(w *writer, n DelegationNote) {
		w.open()
		w.word("callback_id", n.CallbackID)
		w.word("status", string(n.Status))
		w.word("sender", n.Sender)
		w.word("name", n.Name)
		w.integer("depth", n.Depth)
		w.close()
	})
}
