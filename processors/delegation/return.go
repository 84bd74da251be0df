package delegation

import (
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// returned sends the output of a delegated task to the agent that delegated it. It needs no row.
func (t *transition) returned(e outputArrived) {
	raw := topics.DelegationOf(e.Output.ReplyTo)
	if raw == nil {
		return
	}
	task, err := topics.DecodeDelegationTask(raw)
	if err != nil {
		t.DeadLetter(reasonTask)
		return
	}
	caller, ok := t.agents[task.Agent]
	if task.Agent == t.topics.Agent {
		caller, ok = t.topics, true
	}
	if !ok {
		t.DeadLetter(reasonCaller)
		return
	}
	reply := topics.DelegationReply{
		SessionID: task.SessionID, CallbackID: task.CallbackID, Status: topics.DelegationCompleted, Content: e.Output.Content,
		AtMS: t.timeOf(e.Record).UnixMilli(),
	}
	if failure := e.Output.Error; failure != nil && failure.Code == topics.CodeEmptyResponse {
		reply.Content = "" // the caller is told that the agent returned no text
	} else if failure != nil {
		reply.Status, reply.Content, reply.Code = topics.DelegationFailed, failure.Message, cut(string(failure.Code), maxCode)
	} else if s := e.Output.Status; s != nil && *s == resultError {
		reply.Status = topics.DelegationFailed
	}
	reply.Content = fit(reply.Content, t.config.RecordLimit-recordReserve)
	machine.Emit(&t.Effects, caller.DelegationReplies, task.SessionID, e.ID+"/delegation-reply", reply)
}
