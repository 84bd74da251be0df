package peerwire

import (
	"strconv"

	"github.com/turntable-streams/turntable/internal/truncate"
)

// Code is the stable reason of a refusal. Texts may change, codes do not.
type Code string

// The codes of the receiver.
const (
	CodeDisabled         Code = "disabled"          // 503
	CodeMissingToken     Code = "missing_token"     // 401
	CodeUnknownToken     Code = "unknown_token"     // 401
	CodeConcurrencyLimit Code = "concurrency_limit" // 429
	CodeTooLarge         Code = "too_large"         // 413
	CodeInvalidJSON      Code = "invalid_json"      // 400
	CodeInvalidRequest   Code = "invalid_request"   // 400
	CodeAgentForbidden   Code = "agent_forbidden"   // 403
	CodeUnknownAgent     Code = "unknown_agent"     // 404
	CodeHopLimit         Code = "hop_limit"         // 403: the task has passed too many instances
	CodeLoop             Code = "loop"              // 409: the task has passed this instance already
	CodeConflict         Code = "conflict"          // 409: another task with the same ID
	CodeInternal         Code = "internal"          // 500
	CodeUnknownTask      Code = "unknown_task"      // 404: no task with this ID, or it is forgotten
	CodeNoRoom           Code = "no_room"           // 503: too many tasks of the session
)

// The codes of a task that the dispatcher ended without a reply, with the status of the proxy.
const (
	CodeUnknownPeer    Code = "unknown_peer"    // 404
	CodeTimeout        Code = "timeout"         // 504: the peer did not answer before the deadline
	CodeUnreachable    Code = "unreachable"     // 502: no connection
	CodeMalformed      Code = "malformed_reply" // 502
	CodePeerRefused    Code = "peer_refused"    // 502: the peer answered with another status than 2xx, 429 and 503
	CodePeerBusy       Code = "peer_busy"       // 503: the peer answered with 429 or 503
	CodeOutcomeUnknown Code = "outcome_unknown" // 502: the peer may have run the task, and must not be asked again
	CodeCancelled      Code = "cancelled"       // the caller, or the turn that called, no longer waits
	CodeToolForbidden  Code = "tool_forbidden"  // the session may not delegate to peers
	CodeInvalidInput   Code = "invalid_input"   // the input of the tool
)

// Refusal is a response other than 200, with an error body.
type Refusal struct {
	Status int
	Code   Code
	// Text is for people.
	Text string
	// TaskID and PeerID are left out of the body if they are empty.
	TaskID, PeerID string
}

// The refusals that depend on nothing else.
var (
	disabled         = Refusal{Status: 503, Code: CodeDisabled, Text: "Peer delegation is disabled."}
	missingToken     = Refusal{Status: 401, Code: CodeMissingToken, Text: "Missing bearer token."}
	unknownToken     = Refusal{Status: 401, Code: CodeUnknownToken, Text: "Unknown peer token."}
	concurrencyLimit = Refusal{Status: 429, Code: CodeConcurrencyLimit, Text: "Peer inbound concurrency limit reached."}
	tooLarge         = Refusal{Status: 413, Code: CodeTooLarge, Text: "Request body too large."}
	invalidJSON      = Refusal{Status: 400, Code: CodeInvalidJSON, Text: "Invalid JSON body"}
	invalidRequest   = Refusal{
		Status: 400, Code: CodeInvalidRequest, Text: "Invalid peer delegation request. Required: taskId, parentInstanceId, " +
			"content. Optional: parentRunId, parentSessionId, agentId, model, timeoutMs, hopCount, instanceChain, callback.",
	}
	conflict = Refusal{Status: 409, Code: CodeConflict, Text: "Another task was delegated with this taskId."}
	internal = Refusal{Status: 500, Code: CodeInternal, Text: "Internal error."}
)

// Disabled refuses all requests of an instance that is not enabled.
func Disabled() *Refusal { r := disabled; return &r }

// MissingToken refuses a request without a bearer token.
func MissingToken() *Refusal { r := missingToken; return &r }

// UnknownToken refuses a request whose token is not accepted.
func UnknownToken() *Refusal { r := unknownToken; return &r }

// ConcurrencyLimit refuses a request while too many tasks of peers run.
func ConcurrencyLimit() *Refusal { r := concurrencyLimit; return &r }

// TooLarge refuses a body of more than MaxBody bytes.
func TooLarge() *Refusal { r := tooLarge; return &r }

// Conflict refuses a request with the task ID of another one.
func Conflict() *Refusal { r := conflict; return &r }

// Internal refuses a request because of a failure of the receiver, whose text is not told to the peer.
func Internal() *Refusal { r := internal; return &r }

// AgentForbidden refuses a task for an agent that the token may not use. The agent ID is empty if the request names none.
func AgentForbidden(inboundID, agentID string) *Refusal {
	text := "Peer " + strconv.Quote(inboundID) + " may not delegate to agent " + strconv.Quote(agentID) + "."
	if agentID == "" {
		text = "Peer " + strconv.Quote(inboundID) + " must name an agent that it may delegate to."
	}
	return &Refusal{Status: 403, Code: CodeAgentForbidden, Text: text}
}

// UnknownAgent refuses a task for an agent that does not exist.
func UnknownAgent(agentID string) *Refusal {
	return &Refusal{Status: 404, Code: CodeUnknownAgent, Text: "Unknown agent " + strconv.Quote(agentID) + "."}
}

// Error returns the code and the text.
func (r *Refusal) Error() string { return "peer: " + string(r.Code) + ": " + r.Text }

// Body returns the error body.
func (r *Refusal) Body() []byte {
	return pretty(struct {
		Error  string `json:"error"`
		Code   Code   `json:"code"`
		TaskID string `json:"taskId,omitzero"`
		PeerID string `json:"peerId,omitzero"`
	}{r.Text, r.Code, r.TaskID, r.PeerID})
}

// maxErrorText is the largest text of a peer's error, in bytes.
const maxErrorText = 4 << 10

// ReadRefusal reads a response with another status than 2xx. It accepts any body: the text is the member error of a JSON
// object, cut to 4 KiB, and "HTTP <status>" without one; the code is empty if the peer sends none. The text is the peer's: show
// it to a model only through Untrusted.
func ReadRefusal(status int, body []byte) *Refusal {
	r := &Refusal{Status: status, Text: "HTTP " + strconv.Itoa(status)}
	f, err := read(body, MaxBody)
	if err != nil {
		return r
	}
	if text, given, ok := f.text("error"); given && ok {
		r.Text = truncate.Marked(text, maxErrorText)
		if code, _, ok := f.text("code"); ok && Length(code) <= MaxID {
			r.Code = Code(code)
		}
	}
	return r
}
