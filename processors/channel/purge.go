package channel

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// purged handles a purge of the session. Open delegations are cancelled, and nothing is announced any more. Only their IDs stay in
// the row until their ends were read, and earlyFor longer, so that late results are recognised.
func (t *transition) purged(Controlled) {
	if t.isEmpty() {
		return
	}
	t.changed = true
	t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(x *Task) bool { return !x.isOpen() && !x.Purged })
	for _, x := range t.row.Tasks {
		if x.Purged {
			continue
		}
		x.Purged, x.Origin = true, nil
		t.askEnd(x)
	}
	for _, x := range t.row.Early {
		x.Purged, x.Content, x.Code = true, "", ""
	}
	t.row.Pending, t.row.InFlight, t.row.Answered = nil, nil, nil
}

// askEnd writes a reply that ends a delegation: its deadline has passed, or its session was purged.
func (t *transition) askEnd(x *Task) {
	t.changed = true
	x.Phase, x.DueMs = Task_ENDING, t.now.Add(writeAgain).UnixMilli()
	r := topics.DelegationReply{
		SessionID: t.key, CallbackID: x.Id, Status: topics.DelegationTimedOut, AtMS: x.ExpiresMs,
		Content: "The task was not finished within " + msTime(x.ExpiresMs).Sub(msTime(x.OpenedMs)).String() + ".",
	}
	if x.Purged {
		r.Status, r.Content, r.AtMS = topics.DelegationCancelled, "The session was purged.", x.OpenedMs
	}
	t.emit(t.requestID(x)+"/"+string(r.Status), ReplySent{t.rules.Agent, r})
}
