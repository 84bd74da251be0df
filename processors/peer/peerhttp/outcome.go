package peerhttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// maxPeerError is the largest text of a peer in an error, in bytes.
const maxPeerError = 4 << 10

// failure is the body of the answer to a task that has no reply.
type failure struct {
	Error      string        `json:"error"`
	Code       peerwire.Code `json:"code"`
	TaskID     string        `json:"taskId"`
	PeerID     string        `json:"peerId"`
	AgentID    string        `json:"agentId,omitzero"`
	TimeoutMS  int64         `json:"timeoutMs,omitzero"`
	Answered   *bool         `json:"answered,omitzero"`   // the headers of a response had arrived
	PeerStatus int64         `json:"peerStatus,omitzero"` // of the response
	PeerError  string        `json:"peerError,omitzero"`
}

// outcome answers a request whose task was settled: with the reply of the peer, whatever its status says, or with why there is
// none.
func (e *errand) outcome(reply topics.PeerReply) answer {
	switch {
	case reply.State == topics.PeerDone && reply.Body != nil:
		return answer{status: http.StatusOK, body: indented(reply.Body)}
	case reply.State == topics.PeerConflict:
		reply.Code = string(peerwire.CodeConflict)
	case reply.State == topics.PeerNoRoom:
		reply.Code = string(peerwire.CodeNoRoom)
	case reply.State == topics.PeerUnknown:
		reply.Code = string(peerwire.CodeUnknownTask)
	}
	f := failure{
		Code: peerwire.Code(reply.Code), TaskID: e.taskID, PeerID: e.peerID, PeerStatus: reply.HTTPStatus,
		PeerError: truncate.Marked(reply.Detail, maxPeerError),
	}
	status := f.explain(e, reply)
	a := answer{status: status, body: object(f)}
	if status == http.StatusServiceUnavailable {
		a.retryAfter = max(retrySoon, time.Duration(reply.RetryAfterMS)*time.Millisecond)
	}
	return a
}

// explain sets the text, and what else the code needs, and returns the status of the answer.
func (f *failure) explain(e *errand, reply topics.PeerReply) int {
	peer := "Peer " + strconv.Quote(e.peerID)
	switch f.Code {
	case peerwire.CodeUnknownPeer:
		f.Error = "Unknown peer id " + strconv.Quote(e.peerID) + "."
		return http.StatusNotFound
	case peerwire.CodeAgentForbidden:
		f.AgentID, f.Error = e.agentID, peer+" may not be asked for agent "+strconv.Quote(e.agentID)+"."
		if e.agentID == "" {
			f.Error = "A task for peer " + strconv.Quote(e.peerID) + " must name an agent that it may be asked for."
		}
		return http.StatusForbidden
	case peerwire.CodeToolForbidden:
		f.Error = "The session may not delegate to peers."
		return http.StatusForbidden
	case peerwire.CodeHopLimit:
		f.Error = "The task has passed too many instances."
		return http.StatusForbidden
	case peerwire.CodeLoop:
		f.Error = "The task has passed this instance already."
		return http.StatusConflict
	case peerwire.CodeConflict:
		f.Error = peerwire.Conflict().Text
		return http.StatusConflict
	case peerwire.CodeUnknownTask:
		f.Error = "The task has ended, and its outcome is no longer kept."
		return http.StatusGone
	case peerwire.CodeDisabled:
		f.Error = peerwire.Disabled().Text
		return http.StatusServiceUnavailable
	case peerwire.CodeNoRoom:
		f.Error = "The session has no room for the task."
		return http.StatusServiceUnavailable
	case peerwire.CodeInvalidInput:
		f.Error = "The task is not usable."
		return http.StatusBadRequest
	case peerwire.CodeCancelled:
		f.Error = "The task was cancelled."
		return statusClientClosed
	default:
		return f.explainPeer(peer, e, reply)
	}
}

// explainPeer is explain for the failures of the peer and of the way to it.
func (f *failure) explainPeer(peer string, e *errand, reply topics.PeerReply) int {
	switch f.Code {
	case peerwire.CodeTimeout:
		f.TimeoutMS, f.Answered = e.timeout.Milliseconds(), &reply.Answered
		f.Error = peer + ": delegation timed out after " + strconv.FormatInt(f.TimeoutMS, 10) + " ms."
		return http.StatusGatewayTimeout
	case peerwire.CodeUnreachable:
		f.Error = peer + ": request failed."
		if f.PeerError != "" { // no text of the peer: there is no response
			f.Error, f.PeerError = peer+": request failed: "+f.PeerError, ""
		}
		return http.StatusBadGateway
	case peerwire.CodeMalformed:
		f.Error = peer + ": malformed delegation response."
		return http.StatusBadGateway
	case peerwire.CodeOutcomeUnknown:
		f.Error = peer + ": the request was interrupted; the peer may have run the task, and was not asked again."
		return http.StatusBadGateway
	case peerwire.CodePeerRefused, peerwire.CodePeerBusy:
		if f.Error = f.PeerError; f.Error == "" {
			f.Error = "HTTP " + strconv.FormatInt(f.PeerStatus, 10)
		}
		if f.Code == peerwire.CodePeerBusy {
			return http.StatusServiceUnavailable
		}
		return http.StatusBadGateway
	default:
		f.Error, f.Code, f.PeerError = peerwire.Internal().Text, peerwire.CodeInternal, ""
		return http.StatusInternalServerError
	}
}
