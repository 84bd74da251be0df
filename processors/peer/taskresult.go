package peer

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// toolResult is the result of a call of the tool.
type toolResult struct {
	status string
	value  topics.Raw // {"result":...} or {"error":...,"reason":...}
}

// The statuses of results.
const (
	resultSuccess = "success"
	resultError   = "error"
)

// failure returns the result of a call that failed. Calls fail with the code as the reason.
func failure[T ~string](reason T, text string) toolResult {
	b, _ := jsontext.AppendQuote([]byte(`{"error":`), text) // invalid UTF-8 is replaced
	b, _ = jsontext.AppendQuote(append(b, `,"reason":`...), string(reason))
	return toolResult{resultError, append(b, '}')}
}

// result returns the result of the call of a task. Texts of the peer are marked as such.
func (t *transition) result(task *peerrow.Task, o *peerrow.Outcome) toolResult {
	r := resultOf(task, o)
	if !t.fitsRecord(len(r.value)) {
		return failure(peerwire.CodeNoRoom, "The result of peer "+strconv.Quote(task.PeerId)+" does not fit into a record.")
	}
	return r
}

func resultOf(task *peerrow.Task, o *peerrow.Outcome) toolResult {
	if reply, ok := taskReply(task, o); ok {
		text, failed := peerwire.ForModel(reply)
		if failed {
			return failure(reply.Status, text)
		}
		b, _ := jsontext.AppendQuote([]byte(`{"result":`), text)
		return toolResult{resultSuccess, append(b, '}')}
	}
	code := codeOf(o)
	text := textOf(task, code)
	if o.HttpStatus != 0 {
		text += " It answered with status " + strconv.FormatInt(o.HttpStatus, 10) + "."
	}
	if o.Detail != "" {
		text += "\n\n" + peerwire.Untrusted(o.Detail, peerwire.MaxDetail)
	}
	return failure(code, text)
}

// textOf says in English why a task has no reply. It has no text of the peer.
func textOf(task *peerrow.Task, code peerwire.Code) string {
	peer := "peer " + strconv.Quote(task.PeerId)
	switch code {
	case peerwire.CodeToolForbidden:
		return "This session may not delegate tasks to peers."
	case peerwire.CodeDisabled:
		return "Peer delegation is disabled."
	case peerwire.CodeUnknownPeer:
		return "Unknown " + peer + "."
	case peerwire.CodeAgentForbidden:
		return "The task must name an agent that tasks for " + peer + " may name."
	case peerwire.CodeLoop:
		return "The task has passed this instance already."
	case peerwire.CodeHopLimit:
		return "The task was passed on too often."
	case peerwire.CodeNoRoom:
		return "The session has too many tasks of peers, or they are too large."
	case peerwire.CodeTooLarge:
		return "The task is too large."
	case peerwire.CodeConflict:
		return "Another call has delegated a task with this taskId. Omit taskId for a new task."
	case peerwire.CodeTimeout:
		return "The task for " + peer + " timed out."
	case peerwire.CodeUnreachable:
		return "There was no connection to " + peer + "."
	case peerwire.CodeMalformed:
		return "The reply of " + peer + " is malformed."
	case peerwire.CodePeerBusy:
		return "There was no room for the task at " + peer + "."
	case peerwire.CodePeerRefused:
		return "The task was refused by " + peer + "."
	case peerwire.CodeOutcomeUnknown:
		return "The connection was lost while " + peer + " ran the task. It may have run it, and must not get it again."
	case peerwire.CodeCancelled:
		return "The task for " + peer + " was cancelled."
	default:
		return "The task for " + peer + " failed."
	}
}

// answerCall writes the result of a call.
func (t *transition) answerCall(task *peerrow.Task, r toolResult) {
	name, at := ToolName, topics.Timestamp(msTime(task.SettledMs))
	id := task.CallId
	if id == "" {
		id = task.RunId
	}
	if agent, ok := t.agent(task.Agent); ok {
		machine.Emit(&t.Effects, agent.ToolUseResult, t.key, id+"/result", topics.ToolUseResult{
			SessionID: &t.key, ToolUseID: &task.ToolUseId, ToolID: task.ToolId, Name: &name, Result: r.value,
			LatencyMS: max(task.SettledMs-task.OpenedMs, 0), Status: &r.status, TotalTools: task.TotalTools, Timestamp: &at,
		})
	}
}
