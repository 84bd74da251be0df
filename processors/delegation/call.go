package delegation

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The reasons of calls that fail.
const (
	failInvalid = "invalid_input"
	failUnknown = "unknown_agent"
	failDepth   = "too_deep"
	failOpen    = "too_many_open"
	failRoom    = "no_room"
	failMissing = "not_found"
)

// called begins the delegation of a call, and answers the call. A call that is in the row was answered before its row was written.
func (t *transition) called(e called) {
	if e.Call.ToolUseID == nil || *e.Call.ToolUseID == "" {
		t.DeadLetter(reasonCall)
		return
	}
	if t.first(func(x *delegationrow.Task) bool { return x.CallKey == e.ID }) != nil {
		return
	}
	in, err := readSend(e.Call.Input, &t.config)
	if err != nil {
		t.failCall(e, failInvalid, err.Error())
		return
	}
	opened := t.timeOf(e.Record)
	task := &delegationrow.Task{
		CallbackId: t.callbackID(*e.Call.ToolUseID, e.ID), CallKey: e.ID, Target: in.target, Depth: t.depthOf(e) + 1,
		OpenedMs: opened.UnixMilli(), ExpiresMs: opened.Add(t.timeout(in)).UnixMilli(),
	}
	task.Id = t.taskID(task)
	if origin, err := topics.DecodeOrigin(e.Call.Origin); err == nil {
		task.Origin = topics.EncodeOrigin(origin)
	}
	if reason, text := t.refuse(task); reason != "" {
		t.failCall(e, reason, text)
		return
	}
	t.row.Tasks, t.changed = append(t.row.Tasks, task), true
	t.answerCall(e, resultSuccess, t.dispatched(task))
	t.writeStatus(task, "/open", t.statusOf(task))
	t.send(task, in)
	t.endEarly(task)
}

// timeout returns how long the task of a call may take.
func (t *transition) timeout(in sendInput) time.Duration {
	if in.timeout > 0 {
		return min(in.timeout, t.config.Deadline)
	}
	return t.config.Deadline
}

// refuse returns why a delegation is not begun, and a text for the model; an empty reason if it is.
func (t *transition) refuse(task *delegationrow.Task) (reason, text string) {
	need, early := proto.Size(task)+8+reserve(task), t.early(task.Id)
	if early >= 0 { // it was accepted before a crash
		need -= proto.Size(t.row.Early[early])
	}
	switch {
	case !t.isTarget(task.Target):
		return failUnknown, "Tasks cannot be handed off to that agent. Known agents: " + t.targets() + "."
	case task.Depth > int64(t.config.DepthLimit):
		return failDepth, "The task was handed off too often already. Do it without handing it off."
	case early < 0 && t.openTasks() >= t.config.OpenLimit:
		return failOpen, "Too many tasks of this conversation are open. Wait for a result first."
	case !t.room(need):
		return failRoom, "The open tasks of this conversation leave no room for another one. Wait for a result first."
	}
	return "", ""
}

// writeStatus writes a delegation to delegation-status. The record's ID ends with what happened.
func (t *transition) writeStatus(x *delegationrow.Task, what string, d topics.Delegation) {
	machine.Emit(&t.Effects, t.topics.DelegationStatus, t.key, t.requestID(x)+what, d)
}

// statusOf returns a delegation as delegation-status has it.
func (t *transition) statusOf(x *delegationrow.Task) topics.Delegation {
	d := topics.Delegation{
		SessionID: t.key, CallbackID: x.CallbackId, Agent: t.topics.Agent, Target: x.Target, Status: topics.DelegationOpen,
		Depth: x.Depth, StartedMS: x.OpenedMs, DeadlineMS: x.ExpiresMs, EndedMS: x.EndedMs,
	}
	if x.Phase == delegationrow.Task_ENDED {
		d.Status = topics.DelegationStatus(x.Status)
	}
	if len(x.Origin) > 0 {
		d.Channel = taskFrom(x).Channel
	}
	return d
}

// taskFrom returns the origin of a delegation, the zero origin if it has none.
func taskFrom(x *delegationrow.Task) topics.Origin { return originOf(x.Origin) }

// originOf decodes an origin of a row, which was checked before it was stored.
func originOf(raw []byte) topics.Origin {
	if len(raw) == 0 {
		return topics.Origin{}
	}
	origin, _ := topics.DecodeOrigin(raw)
	return origin
}
