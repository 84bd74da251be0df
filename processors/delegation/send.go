package delegation

import (
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

const roleUser = "user"

// send writes the message of a task. The turn of the task has no origin: its output goes back to the delegation.
func (t *transition) send(x *delegationrow.Task, in sendInput) {
	if toPeer(x) {
		t.sendToPeer(x, in)
		return
	}
	session, role, at := t.taskSession(x), roleUser, topics.Timestamp(msTime(x.OpenedMs))
	metadata := append([]byte(`{"request_id":`), textValue(t.requestID(x))...)
	metadata = append(metadata, `,"`+topics.MetaTask+`":`...)
	metadata = append(metadata, topics.EncodeDelegationTask(topics.DelegationTask{
		Agent: t.topics.Agent, SessionID: t.key, CallbackID: x.Id, Depth: x.Depth,
	})...)
	machine.Emit(&t.Effects, t.agents[x.Target].MessageInput, session, t.requestID(x)+"/message", topics.Message{
		SessionID: &session, UserID: userOf(taskFrom(x)), Role: &role, Content: textValue(in.message), Timestamp: &at,
		Metadata: append(metadata, '}'),
	})
}

// cancelTask tells the target that the task is no longer wanted. A target that is no longer configured is not told.
func (t *transition) cancelTask(x *delegationrow.Task) {
	if toPeer(x) {
		t.cancelAtPeer(x)
		return
	}
	target, ok := t.agents[x.Target]
	if !ok {
		t.Warn("a delegation is to an agent that is not given to Config.Agents; the agent is not told of its end")
		return
	}
	request, reason := t.requestID(x), "The delegation has ended."
	machine.Emit(&t.Effects, target.SessionControl, t.taskSession(x), request+"/cancel", topics.Control{
		Action: topics.ActionCancel, RequestID: &request, Reason: &reason,
	})
}

// userOf returns the user of an origin as their own messages name them, nil if it has none.
func userOf(o topics.Origin) *string {
	id := o.UserID()
	if id == "" {
		return nil
	}
	return &id
}

// cut returns at most so many bytes of a text, between two characters.
func cut(text string, most int) string { return truncate.Text(text, most) }
