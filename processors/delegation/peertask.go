package delegation

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// sendToPeer asks the group of package peer to send a task. No request waits for it there: the reply is written for every reader.
func (t *transition) sendToPeer(x *delegationrow.Task, in sendInput) {
	peer, agent := peerOf(x)
	request := []member{{"taskId", x.Id}, {"parentInstanceId", ""}, {"parentSessionId", t.key}, {"content", in.message}}
	if agent != "" {
		request = append(request, member{"agentId", agent})
	}
	machine.Emit(&t.Effects, t.topics.PeerCommands, t.key, t.requestID(x)+"/message", topics.PeerCommand{
		Kind: topics.PeerDelegate, TaskID: x.Id, PeerID: peer, Request: object(request...), Hash: t.peerHash(x), Detached: true,
		DeadlineMS: x.ExpiresMs,
	})
}

func (t *transition) cancelAtPeer(x *delegationrow.Task) {
	if !t.config.Peers {
		t.Warn("a delegation to a peer is open, but Config.Peers is not set; the peer is not told of its end")
		return
	}
	peer, _ := peerOf(x)
	machine.Emit(&t.Effects, t.topics.PeerCommands, t.key, t.requestID(x)+"/cancel", topics.PeerCommand{
		Kind: topics.PeerCancel, TaskID: x.Id, PeerID: peer, Hash: t.peerHash(x),
	})
}

// peerHash identifies the request of a task.
func (t *transition) peerHash(x *delegationrow.Task) string { return t.digest(ofTask, x.CallKey) }

// peerReplied writes the end of a peer's task to delegation-replies. It needs no row, so it does not matter whether the call was
// read before.
func (t *transition) peerReplied(e peerReplied) {
	r := e.Reply
	if r.PeerID == "" || !strings.HasPrefix(r.TaskID, taskPrefix) || r.Waiter != "" {
		return
	}
	reply := topics.DelegationReply{
		SessionID: t.key, CallbackID: r.TaskID, Status: topics.DelegationFailed, AtMS: t.timeOf(e.Record).UnixMilli(),
	}
	switch r.State {
	case topics.PeerRunning:
		return
	case topics.PeerDone:
		fillFromPeer(&reply, r)
	default:
		reply.Code, reply.Content = string(r.State), "The peer did not run the task."
	}
	reply.Content = fit(reply.Content, t.config.RecordLimit-recordReserve)
	machine.Emit(&t.Effects, t.topics.DelegationReplies, t.key, e.ID+"/delegation-reply", reply)
}

// fillFromPeer sets how the task of a peer ended. Its texts are another instance's.
func fillFromPeer(reply *topics.DelegationReply, r topics.PeerReply) {
	if r.Body == nil {
		reply.Code, reply.Content = cut(r.Code, maxCode), "The peer returned no result."
		if r.Detail != "" {
			reply.Content += " " + r.Detail
		}
		return
	}
	text := func(name string) string {
		value, _ := topics.Lookup(r.Body, name)
		if len(value) == 0 || value[0] != '"' {
			return ""
		}
		return *topics.TextOf(value)
	}
	switch status := text("status"); status {
	case "success":
		reply.Status, reply.Content = topics.DelegationCompleted, text("result")
	default:
		reply.Code, reply.Content = cut(status, maxCode), text("error")
		if approval := text("pendingApprovalSummary"); approval != "" {
			reply.Content = "The task needs an approval that the peer cannot get: " + approval
		}
	}
}
