package peer

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/peer/internal/audit"
	"github.com/turntable-streams/turntable/topics"
)

// askSettle asks for the end of a task. The outcome stays in the row until the record was read, because the record is written
// again if it does not come back.
func (t *transition) askSettle(task *peerrow.Task, outcome *peerrow.Outcome) {
	t.changed = true
	task.Phase, task.DueMs = peerrow.Task_SETTLING, t.now.Add(writeAgain).UnixMilli()
	task.Request, task.Outcome = nil, nil
	t.emitSettle(task, outcome)
	switch {
	case t.room(len(outcome.Reply) + len(outcome.Detail)):
	case len(outcome.Reply) > 0:
		outcome = &peerrow.Outcome{Code: string(peerwire.CodeNoRoom)}
	default:
		outcome.Detail = ""
	}
	task.Outcome = outcome
}

func (t *transition) emitSettle(task *peerrow.Task, o *peerrow.Outcome) {
	machine.Emit(&t.Effects, t.own.PeerCommands, t.key, task.RunId+"/settle", topics.PeerCommand{
		Kind: topics.PeerSettle, TaskID: task.Id, PeerID: task.PeerId, Hash: task.Hash, Reply: rawOf(o.Reply), Code: o.Code,
		HTTPStatus: o.HttpStatus, RetryAfterMS: o.RetryAfterMs, Detail: o.Detail, Answered: o.Answered,
	})
}

// settled ends a task. The first record counts. One of a task that is not known comes before the task after a crash, so it is
// kept for the task; or it repeats that of a task that is forgotten.
func (t *transition) settled(e commanded) {
	c := e.Command
	if c.PeerID == "" {
		t.DeadLetter(reasonCommand)
		return
	}
	outcome := &peerrow.Outcome{
		Reply: c.Reply, Code: c.Code, HttpStatus: c.HTTPStatus, RetryAfterMs: c.RetryAfterMS, Detail: c.Detail, Answered: c.Answered,
	}
	task := t.find(c.TaskID, c.PeerID, c.Hash)
	switch {
	case task == nil:
		task = &peerrow.Task{Id: c.TaskID, PeerId: c.PeerID, Hash: c.Hash, SettledMs: t.timeOf(e.Record).UnixMilli()}
		t.keep(task, outcome, t.config.RowLimit) // also a large one, because the call must end as before the crash
		if t.room(proto.Size(task) + taskReserve) {
			t.row.Tasks = append(t.row.Tasks, task)
			t.changed = true
		}
	case isOpen(task):
		task.SettledMs = t.timeOf(e.Record).UnixMilli()
		t.end(task, outcome)
	}
}

// end ends a task and tells everyone who waits for it.
func (t *transition) end(task *peerrow.Task, outcome *peerrow.Outcome) {
	t.changed = true
	if outcome.Code == string(peerwire.CodeCancelled) && task.Phase != peerrow.Task_SETTLING {
		t.cancelAttempt(task) // the process that cancelled the task may have crashed before
	}
	t.auditEnd(task, outcome)
	most := maxKept
	if isCall(task) {
		t.answerCall(task, t.result(task, outcome))
		most = maxKeptOfCall
	} else {
		t.reply(task, "", topics.PeerDone, outcome)
	}
	task.Request, task.Outcome, task.Waiters, task.DueMs = nil, nil, nil, 0
	t.keep(task, outcome, most)
	t.forgetOldest()
}

// keep keeps the outcome of a task that has ended, if it is small enough and there is room for it, and marks the task as ended.
func (t *transition) keep(task *peerrow.Task, outcome *peerrow.Outcome, most int) {
	if !task.Purged && len(outcome.Reply) <= most && t.room(proto.Size(outcome)+taskReserve) {
		task.Outcome = outcome
	}
	task.Phase = peerrow.Task_SETTLED
}

// auditEnd writes the end of a task to the audit. A call that was refused because another one has its task ID has no beginning
// in the audit.
func (t *transition) auditEnd(task *peerrow.Task, o *peerrow.Outcome) {
	if o.Code == string(peerwire.CodeConflict) && task.Attempts == 0 {
		return
	}
	sent := audit.Sent(peerwire.Request{TaskID: task.Id}, task.PeerId, t.key, task.RunId, msTime(task.OpenedMs))
	at := msTime(task.SettledMs)
	if reply, ok := taskReply(task, o); ok {
		t.audit(task, "end", audit.Acknowledged(sent, reply, at))
		return
	}
	t.audit(task, "end", audit.SendFailed(sent, codeOf(o), int(o.HttpStatus), at))
}

// taskReply returns the reply of a task; ok is false if it ended without one.
func taskReply(task *peerrow.Task, o *peerrow.Outcome) (reply peerwire.Reply, ok bool) {
	if len(o.Reply) == 0 {
		return peerwire.Reply{}, false
	}
	reply, err := peerwire.ReadReply(o.Reply, task.Id)
	return reply, err == nil
}

// codeOf returns the reason of a task that ended without a reply.
func codeOf(o *peerrow.Outcome) peerwire.Code {
	if len(o.Reply) > 0 || o.Code == "" {
		return peerwire.CodeMalformed
	}
	return peerwire.Code(o.Code)
}

// tellTask tells a waiter how a task ended.
func (t *transition) tellTask(task *peerrow.Task, waiter string) {
	if task.Outcome == nil {
		t.reply(task, waiter, topics.PeerUnknown, nil)
		return
	}
	t.reply(task, waiter, topics.PeerDone, task.Outcome)
}

// reply tells a waiter, or everyone who waits for the task if waiter is empty, how a task is.
func (t *transition) reply(task *peerrow.Task, waiter string, state topics.PeerState, o *peerrow.Outcome) {
	r := topics.PeerReply{TaskID: task.Id, PeerID: task.PeerId, Waiter: waiter, State: state, Hash: task.Hash}
	if o != nil {
		if _, ok := taskReply(task, o); ok {
			r.Body = rawOf(o.Reply)
		} else {
			r.Code, r.HTTPStatus, r.RetryAfterMS = string(codeOf(o)), o.HttpStatus, o.RetryAfterMs
			r.Detail, r.Answered = o.Detail, o.Answered
		}
	}
	id := task.RunId + "/reply"
	if waiter != "" {
		id += "/" + waiter + "/" + string(state)
	}
	machine.Emit(&t.Effects, t.own.PeerReplies, t.key, id, r)
}

// rawOf returns the JSON value in bytes, nil if there are none.
func rawOf(b []byte) topics.Raw {
	if len(b) == 0 {
		return nil
	}
	return topics.Raw(b)
}

// forgetOldest forgets tasks that have ended while there are too many, oldest first.
func (t *transition) forgetOldest() {
	ended := len(t.row.Tasks) - t.openTasks()
	t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(x *peerrow.Task) bool {
		if isOpen(x) || ended <= maxEnded {
			return false
		}
		ended--
		return true
	})
}
