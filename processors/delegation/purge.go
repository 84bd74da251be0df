package delegation

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// codePurged is the code of the end of a delegation whose session was purged. After a crash, it may be read before the purge.
const codePurged = "purged"

// purged handles a purge of the session. Open delegations are cancelled, and nothing is announced any more. Only IDs stay in the
// row, for earlyFor after the end of a delegation, so that late results and calls that are read again are recognised.
func (t *transition) purged(controlled) {
	if t.isEmpty() {
		return
	}
	t.changed = true
	for _, x := range t.row.Tasks {
		if !x.Purged && isOpen(x) {
			x.Purged, x.Origin = true, nil
			t.askEnd(x)
		}
		x.Purged = true
	}
	t.row.Tasks = slices.DeleteFunc(t.row.Tasks, func(x *delegationrow.Task) bool { return !isOpen(x) && t.dueOf(x) <= t.nowMS() })
	for _, x := range t.row.Early {
		x.Purged, x.Content, x.Code = true, "", ""
	}
	t.row.Pending, t.row.InFlight, t.row.Answered = nil, nil, nil
}

// askEnd writes a reply that ends a delegation: its deadline has passed, or its session was purged.
func (t *transition) askEnd(x *delegationrow.Task) {
	t.changed = true
	x.Phase, x.DueMs = delegationrow.Task_ENDING, t.now.Add(writeAgain).UnixMilli()
	r := topics.DelegationReply{
		SessionID: t.key, CallbackID: x.Id, Status: topics.DelegationTimedOut, AtMS: x.ExpiresMs,
		Content: "The task was not finished within " + msTime(x.ExpiresMs).Sub(msTime(x.OpenedMs)).String() + ".",
	}
	if x.Purged {
		r.Status, r.Code, r.Content, r.AtMS = topics.DelegationCancelled, codePurged, "The session was purged.", x.OpenedMs
	}
	machine.Emit(&t.Effects, t.topics.DelegationReplies, t.key, t.requestID(x)+"/"+string(r.Status), r)
}
