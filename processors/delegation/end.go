package delegation

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/topics"
)

// maxCode is the largest error code in bytes. Codes of other instances can be longer.
const maxCode = 128

// replied ends a delegation. The first record counts. One of a call that is not known comes before the call after a crash, so it
// is kept for the call; or it is of a delegation that is forgotten.
func (t *transition) replied(e replied) {
	if e.Reply.SessionID != t.key {
		t.DeadLetter(reasonForeign)
		return
	}
	task := t.find(e.Reply.CallbackID)
	switch {
	case task == nil:
		t.hold(e)
		return
	case isOpen(task):
		t.end(task, e.Reply, t.timeOf(e.Record))
	}
	t.answerCancel(task, e.Reply)
}

// end ends a delegation: the result is written, the target is cancelled if it was not the one that ended it, and the result
// is announced if there is a place for it.
func (t *transition) end(task *delegationrow.Task, r topics.DelegationReply, at time.Time) {
	t.changed = true
	task.Phase, task.DueMs, task.EndedMs = delegationrow.Task_ENDED, 0, max(at.UnixMilli(), task.OpenedMs, 1)
	task.Status, task.EndedBy = string(r.Status), r.CallKey
	if r.Code == codePurged {
		task.Purged, task.Origin = true, nil
	}
	status := t.statusOf(task)
	status.Code = cut(r.Code, maxCode)
	text := fit(r.Content, t.config.RecordLimit-recordReserve)
	if r.Status == topics.DelegationCompleted {
		status.Result = text
	} else {
		status.Error = text
	}
	origin := task.Origin
	task.Origin = nil
	t.writeStatus(task, "/end", status)
	if r.Status == topics.DelegationTimedOut || r.Status == topics.DelegationCancelled {
		t.cancelTask(task)
	}
	if !task.Purged && t.announces(origin) {
		t.announce(task, origin, status)
	}
	t.forgetOldest()
	t.dispatch()
}

// announce adds the result of a delegation to those that wait to be announced. The row has room for minAnnounced bytes of it.
func (t *transition) announce(task *delegationrow.Task, origin []byte, d topics.Delegation) {
	text := outcome(d)
	c := &delegationrow.Callback{
		CallbackId: task.CallbackId, CallKey: task.CallKey, Target: task.Target, Origin: origin, Depth: task.Depth,
		Status: task.Status, EndedMs: task.EndedMs, Size: int64(len(text)),
	}
	most := min(len(text), maxAnnounced)
	c.Text = cut(text, max(t.free(most+proto.Size(c)+16)-proto.Size(c)-16, min(most, minAnnounced)))
	t.row.Pending = append(t.row.Pending, c)
}

// outcome returns the text that announces how a delegation ended.
func outcome(d topics.Delegation) string {
	switch {
	case d.Status != topics.DelegationCompleted && d.Code != "":
		return "(" + d.Code + ") " + d.Error
	case d.Status != topics.DelegationCompleted:
		return d.Error
	case d.Result == "":
		return "The agent returned no text."
	default:
		return d.Result
	}
}
