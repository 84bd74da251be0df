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

// beginTask begins a task, unless it is known. The peer, the task ID and the hash identify it. A task that is refused is a task
// too, which is settled with the reason: how it ends is then decided in one place.
func (t *transition) beginTask(task *peerrow.Task, req peerwire.Request, waiter string) {
	task.InstanceId = t.configuration().InstanceID
	known := t.find(task.Id, task.PeerId, task.Hash)
	if known != nil && !isEarly(known) {
		t.beginAgain(known, task, waiter)
		return
	}
	conflict := t.isTaken(task)
	if conflict && !isCall(task) {
		t.reply(task, waiter, topics.PeerConflict, nil)
		return
	}
	if known != nil {
		t.beginEarly(known, task, req)
		return
	}
	if waiter != "" {
		task.Waiters = []string{waiter}
	}
	code := peerwire.CodeConflict
	if !conflict {
		code = t.admit(task, &req)
	}
	t.open(task, req, code)
}

// open adds a task to the row. The code says why it is refused; empty if it is not.
func (t *transition) open(task *peerrow.Task, req peerwire.Request, code peerwire.Code) {
	if code == "" {
		task.Request = req.Body()
		switch {
		case len(task.Request) > min(peerwire.MaxBody, t.config.RecordLimit-recordReserve):
			code = peerwire.CodeTooLarge
		case t.openTasks() >= t.config.TaskLimit, !t.room(proto.Size(task) + taskReserve):
			code = peerwire.CodeNoRoom
		}
	}
	if code != "" {
		task.Request = nil
		if !t.room(proto.Size(task) + taskReserve) {
			t.turnAway(task, req)
			return
		}
	}
	t.changed = true
	t.row.Tasks = append(t.row.Tasks, task)
	if code != peerwire.CodeConflict { // the audit has one task with an ID
		t.auditSent(task, req)
	}
	if code != "" {
		t.askSettle(task, &peerrow.Outcome{Code: string(code)})
		return
	}
	t.attempt(task)
}

// turnAway ends a task for which the row has no room, not even without its request.
func (t *transition) turnAway(task *peerrow.Task, req peerwire.Request) {
	none := &peerrow.Outcome{Code: string(peerwire.CodeNoRoom)}
	task.SettledMs = task.OpenedMs
	t.auditSent(task, req)
	t.auditEnd(task, none)
	if isCall(task) {
		t.answerCall(task, t.result(task, none))
		return
	}
	for _, waiter := range task.Waiters {
		t.reply(task, waiter, topics.PeerNoRoom, nil)
	}
}

// beginAgain handles a repeat of a task: who waits for the task is told how it ended, or is told when it ends.
func (t *transition) beginAgain(known, again *peerrow.Task, waiter string) {
	switch {
	case isCall(known) && !isOpen(known):
		if known.Outcome != nil {
			t.answerCall(known, t.result(known, known.Outcome))
		}
	case isCall(known):
	case !isOpen(known):
		t.tellTask(known, waiter)
	default:
		if again.Detached && !known.Detached {
			known.Detached, t.changed = true, true
		}
		t.addWaiter(known, waiter)
	}
}

// addWaiter lets a request wait for a task. If there are too many, the task continues without any.
func (t *transition) addWaiter(task *peerrow.Task, waiter string) {
	switch {
	case waiter == "" || slices.Contains(task.Waiters, waiter):
	case len(task.Waiters) >= maxWaiters || !t.room(len(waiter)+8):
		t.changed = t.changed || !task.Detached
		task.Detached = true
	default:
		t.changed = true
		task.Waiters = append(task.Waiters, waiter)
	}
}

// beginEarly handles a task whose end was read first: after a crash, the records of two topics may come in another order than
// before it. The task is not begun again.
func (t *transition) beginEarly(known, task *peerrow.Task, req peerwire.Request) {
	outcome := known.Outcome
	if outcome == nil { // it did not fit into the row
		outcome = &peerrow.Outcome{Code: string(peerwire.CodeNoRoom)}
	}
	t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(x *peerrow.Task) bool { return x == known })
	t.changed = true
	task.Purged, task.SettledMs = known.Purged, known.SettledMs
	if t.room(proto.Size(task) + taskReserve) {
		t.row.Tasks = append(t.row.Tasks, task)
	}
	if outcome.Code != string(peerwire.CodeConflict) {
		t.auditSent(task, req)
	}
	t.end(task, outcome)
}

// admit makes the checks that come before a task is sent. It sets what only the configuration knows. The code is empty if the
// task may be sent.
func (t *transition) admit(task *peerrow.Task, req *peerwire.Request) peerwire.Code {
	s := t.configuration()
	var path peerwire.Path
	if run := t.row.Run; run != nil {
		path = peerwire.Path{Hops: int(run.Hops), Chain: run.Chain}
	}
	req.ParentInstanceID, req.Path = task.InstanceId, path.Via(task.InstanceId)
	if t.forbidden() {
		return peerwire.CodeToolForbidden
	}
	if !s.Enabled {
		return peerwire.CodeDisabled
	}
	to, ok := s.Peer(task.PeerId)
	switch {
	case !ok:
		return peerwire.CodeUnknownPeer
	case !to.MayUse(req.AgentID):
		return peerwire.CodeAgentForbidden
	case slices.Contains(path.Chain, task.InstanceId):
		return peerwire.CodeLoop
	case req.Path.Hops > s.MaxHops:
		return peerwire.CodeHopLimit
	}
	if task.TimeoutMs <= 0 {
		task.TimeoutMs = timeoutOf(to).Milliseconds()
	}
	return ""
}

// find returns the task with an ID and a hash, nil if there is none.
func (t *transition) find(taskID, peerID, hash string) *peerrow.Task {
	for _, x := range t.row.Tasks {
		if x.Id == taskID && x.PeerId == peerID && x.Hash == hash {
			return x
		}
	}
	return nil
}

// isTaken reports whether another task of the same topic has the ID of a task. The order of two topics is not the same after a
// crash, so tasks of two topics are left to the peer, which refuses the second one.
func (t *transition) isTaken(task *peerrow.Task) bool {
	return slices.ContainsFunc(t.row.Tasks, func(x *peerrow.Task) bool {
		return x.Id == task.Id && x.PeerId == task.PeerId && x.Agent == task.Agent && x.Hash != task.Hash && !isEarly(x)
	})
}

func (t *transition) openTasks() (n int) {
	for _, x := range t.row.Tasks {
		if isOpen(x) {
			n++
		}
	}
	return n
}

func (t *transition) auditSent(task *peerrow.Task, req peerwire.Request) {
	t.audit(task, "sent", audit.Sent(req, task.PeerId, t.key, task.RunId, msTime(task.OpenedMs)))
}

// audit writes a record of the audit. All records of a task are in one chain, also if the instance gets another ID meanwhile. An
// instance without an ID has no audit: its records would have no key.
func (t *transition) audit(task *peerrow.Task, step string, r topics.PeerAudit) {
	if r.InstanceID = task.InstanceId; r.InstanceID != "" {
		r.Version = topics.PeerAuditVersion
		machine.Emit(&t.Effects, t.events, r.InstanceID, task.RunId+"/"+step, r)
	}
}
