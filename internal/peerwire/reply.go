package peerwire

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/turntable-streams/turntable/internal/truncate"
)

// Status is how a run ended.
type Status string

// The statuses. A reply with another one is malformed.
const (
	StatusSuccess  Status = "success"
	StatusError    Status = "error"
	StatusRejected Status = "rejected" // it needed a person's approval
)

// ErrReply is wrapped by the errors about a reply that is not well-formed. The errors do not quote it.
var ErrReply = errors.New("wire: malformed delegation response")

// maxTools is the largest number of names in toolsUsed.
const maxTools = 1000

// Reply is the body of a response with status 200, for every outcome of a run.
type Reply struct {
	TaskID         string // that of the request
	PeerInstanceID string
	PeerRunID      string
	PeerSessionID  string
	Status         Status
	Result         string // empty for none
	Error          string
	// ToolsUsed are the names of the tools that the run is known to have used. A call whose record is read after the run's output
	// is missing: topics have no common order.
	ToolsUsed []string
	AgentID   string
	Model     string
	// PendingApprovalSummary says which approval the run needed, see ApprovalSummary. A reply with one is StatusRejected.
	PendingApprovalSummary string
	// Thrown says that the run failed before it could report. ToolsUsed, AgentID, Model and PendingApprovalSummary are then
	// left out of the body.
	Thrown bool
}

// ApprovalSummary returns the PendingApprovalSummary for a call of a tool. Both texts may be blank.
func ApprovalSummary(tool, prompt string) string {
	if tool = Trim(tool); tool == "" {
		tool = "tool"
	}
	if prompt = Trim(prompt); prompt == "" {
		return tool + " requires approval"
	}
	return tool + ": " + prompt
}

// Settled returns the reply with the members that its outcome may have: a run that was thrown is an error, a pending approval
// is a rejection, and only a success has a result and no error.
func (r Reply) Settled() Reply {
	switch {
	case r.Thrown:
		r.Status, r.ToolsUsed, r.AgentID, r.Model, r.PendingApprovalSummary = StatusError, nil, "", "", ""
	case r.PendingApprovalSummary != "":
		r.Status = StatusRejected
	}
	if r.Status == StatusSuccess {
		r.Error = ""
	} else {
		r.Result = ""
	}
	return r
}

// Shortened returns the reply with as much of its result as lets the body fit, and with a note of how much that is. It returns
// the reply unchanged if its body fits, and false if no body with a result fits.
func (r Reply) Shortened(fits func(body []byte) bool) (short Reply, ok bool) {
	result := r.Result
	for size := len(result); !fits(r.Body()); {
		if size == 0 {
			return r, false
		}
		size -= size/8 + 1 // each body is encoded, so few are tried
		kept := truncate.Text(result, size)
		r.Result = kept + "\n\n[Truncated: the first " + strconv.Itoa(len(kept)) + " of " + strconv.Itoa(len(result)) + " bytes.]"
	}
	return r, true
}

// replyHead is the part of a body that every reply has.
type replyHead struct {
	TaskID         string  `json:"taskId"`
	PeerInstanceID string  `json:"peerInstanceId"`
	PeerRunID      string  `json:"peerRunId"`
	PeerSessionID  string  `json:"peerSessionId"`
	Status         Status  `json:"status"`
	Result         *string `json:"result"`
	Error          string  `json:"error,omitzero"`
}

// Body returns the body of the reply. A pending approval makes it StatusRejected, whatever Status says; only StatusSuccess has
// a result, and only StatusError an error.
func (r Reply) Body() []byte {
	r = r.Settled()
	if r.Status != StatusError {
		r.Error = ""
	}
	head := replyHead{r.TaskID, r.PeerInstanceID, r.PeerRunID, r.PeerSessionID, r.Status, orNull(r.Result), r.Error}
	if r.Thrown {
		return pretty(head)
	}
	tools := r.ToolsUsed
	if tools == nil {
		tools = []string{}
	}
	return pretty(struct {
		replyHead
		ToolsUsed              []string `json:"toolsUsed"`
		AgentID                string   `json:"agentId,omitzero"`
		Model                  string   `json:"model,omitzero"`
		PendingApprovalSummary *string  `json:"pendingApprovalSummary"`
	}{head, tools, r.AgentID, r.Model, orNull(r.PendingApprovalSummary)})
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ReadReply reads the body of a response with a status of 2xx to the request with a task ID. The error wraps ErrReply if the
// body is larger than MaxReply, is no JSON object, lacks taskId, peerInstanceId or a known status, has a member of a wrong
// type, or is the reply to another task. A reply that says success and has a pending approval is read as StatusRejected.
func ReadReply(body []byte, taskID string) (Reply, error) {
	f, err := read(body, MaxReply)
	if err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrReply, err)
	}
	var r Reply
	task, given, _ := f.text("taskId")
	switch {
	case !given:
		return Reply{}, fmt.Errorf("%w: no taskId", ErrReply)
	case task != taskID:
		return Reply{}, fmt.Errorf("%w: the reply to another task", ErrReply)
	}
	if _, given, _ := f.text("peerInstanceId"); !given {
		return Reply{}, fmt.Errorf("%w: no peerInstanceId", ErrReply)
	}
	for _, field := range []struct {
		name string
		text *string
		max  int
	}{
		{"taskId", &r.TaskID, MaxID},
		{"peerInstanceId", &r.PeerInstanceID, MaxID},
		{"peerRunId", &r.PeerRunID, MaxID},
		{"peerSessionId", &r.PeerSessionID, MaxID},
		{"status", (*string)(&r.Status), MaxID},
		{"result", &r.Result, MaxReply},
		{"error", &r.Error, MaxReply},
		{"agentId", &r.AgentID, MaxID},
		{"model", &r.Model, MaxID},
		{"pendingApprovalSummary", &r.PendingApprovalSummary, MaxReply},
	} {
		text, _, ok := f.text(field.name)
		if !ok || Length(text) > field.max {
			return Reply{}, fmt.Errorf("%w: %s is no text of at most %d characters", ErrReply, field.name, field.max)
		}
		*field.text = text
	}
	switch r.Status {
	case StatusSuccess, StatusError, StatusRejected:
	default:
		return Reply{}, fmt.Errorf("%w: unknown status", ErrReply)
	}
	var ok bool
	if r.ToolsUsed, ok = f.texts("toolsUsed", maxTools); !ok {
		return Reply{}, fmt.Errorf("%w: toolsUsed is no list of at most %d texts", ErrReply, maxTools)
	}
	return r.Settled(), nil
}
