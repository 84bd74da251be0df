package delegation

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// returned sends the output of a delegated task to the agent that delegated it. It needs no row.
func (t *transition) returned(e outputArrived) {
	raw := topics.DelegationOf(e.Output.ReplyTo)
	if raw == nil {
		return
	}
	task, err := topics.DecodeDelegationTask(raw)
	switch {
	case err != nil:
		t.deadLetter(reasonTask)
		return
	case task.Agent != t.agent && !slices.Contains(t.config.Agents, task.Agent):
		t.deadLetter(reasonCaller)
		return
	}
	reply := topics.DelegationReply{
		SessionID: task.SessionID, CallbackID: task.CallbackID, Status: topics.DelegationCompleted, Content: e.Output.Content,
		AtMS: t.timeOf(e.record).UnixMilli(),
	}
	if failure := e.Output.Error; failure != nil && failure.Code == topics.CodeEmptyResponse {
		reply.Content = "" // the caller is told that the agent returned no text
	} else if failure != nil {
		reply.Status, reply.Content, reply.Code = topics.DelegationFailed, failure.Message, cut(string(failure.Code), maxCode)
	} else if s := e.Output.Status; s != nil && *s == resultError {
		reply.Status = topics.DelegationFailed
	}
	reply.Content = fit(reply.Content, t.config.RecordLimit-recordReserve)
	t.emitTo(task.SessionID, e.ID+"/delegation-reply", replySent{task.Agent, reply})
}
