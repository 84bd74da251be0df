package delegation

import (
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// cancelled handles a call of agent_cancel. It asks for the end of the delegation, and is answered when that is read. Delegations
// of other sessions are in other rows, so they are unknown.
func (t *transition) cancelled(e called) {
	if e.Call.ToolUseID == nil || *e.Call.ToolUseID == "" {
		t.DeadLetter(reasonCall)
		return
	}
	callbackID, err := readCancel(e.Call.Input)
	if err != nil {
		t.failCall(e, failInvalid, err.Error())
		return
	}
	task := t.named(callbackID)
	// A call that is read again must not end a delegation that began after it and has the same ID.
	if task == nil || task.Purged || task.OpenedMs > t.timeOf(e.Record).UnixMilli() {
		t.failCall(e, failMissing, "This conversation has no such delegation.")
		return
	}
	r := topics.DelegationReply{
		SessionID: t.key, CallbackID: task.Id, Status: topics.DelegationCancelled, Content: "The task was cancelled.",
		CallID: *e.Call.ToolUseID, TotalTools: e.Call.TotalTools, CallKey: e.ID, AtMS: t.timeOf(e.Record).UnixMilli(),
	}
	if e.Call.ToolID != nil {
		r.ToolID = *e.Call.ToolID
	}
	machine.Emit(&t.Effects, t.topics.DelegationReplies, t.key, e.ID+"/delegation-reply", r)
}

// answerCancel answers the call of agent_cancel that a reply is of, if there is one. The delegation has ended.
func (t *transition) answerCancel(task *delegationrow.Task, r topics.DelegationReply) {
	if r.CallID == "" {
		return
	}
	text := "The delegation was cancelled."
	if task.EndedBy != r.CallKey {
		text = "It had ended already: " + task.Status + "."
	}
	name, status, at := CancelTool, resultSuccess, topics.Timestamp(msTime(task.EndedMs))
	result := topics.ToolUseResult{
		SessionID: &t.key, ToolUseID: &r.CallID, Name: &name, Status: &status, TotalTools: r.TotalTools, Timestamp: &at,
		Result: object(member{"status", task.Status}, member{"callback_id", task.CallbackId}, member{"message", text}),
	}
	if r.ToolID != "" {
		result.ToolID = &r.ToolID
	}
	machine.Emit(&t.Effects, t.topics.ToolUseResult, t.key, r.CallKey+"/result", result)
}
