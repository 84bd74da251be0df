package delegation

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/topics"
)

// textDropped replaces the text of an end that came before its call, if the row has no room for it: how it ended counts more.
const textDropped = "The text of the result was dropped, because too many results waited."

// hold keeps the end of a delegation whose call was not read yet. After a crash, the records of two topics may come in another
// order than before it. The first end counts.
func (t *transition) hold(e replied) {
	r := e.Reply
	if t.early(r.CallbackID) >= 0 {
		return
	}
	early := &delegationrow.Early{
		Id: r.CallbackID, Status: string(r.Status), Content: r.Content, Code: cut(r.Code, maxCode), CallId: r.CallID,
		ToolId: r.ToolID, TotalTools: r.TotalTools, CallKey: r.CallKey, AtMs: t.timeOf(e.Record).UnixMilli(),
		UntilMs: t.now.Add(earlyFor).UnixMilli(),
	}
	if len(t.row.Early) >= t.config.OpenLimit {
		t.DeadLetter(reasonNoRoom)
		return
	}
	// Its text does not shorten results that wait. It may be of a delegation that is forgotten, so that there is no call.
	size := proto.Size(early) + 8
	early.Content = cut(early.Content, max(len(early.Content)-size+t.free(size), min(len(early.Content), minAnnounced)))
	for !t.room(proto.Size(early) + 8) {
		switch size := len(early.Content); {
		case size > minAnnounced:
			early.Content = cut(early.Content, max(size/2, minAnnounced))
		case size > len(textDropped):
			early.Content = textDropped
		default:
			t.DeadLetter(reasonNoRoom)
			return
		}
	}
	t.row.Early, t.changed = append(t.row.Early, early), true
}

// endEarly ends a delegation whose end was read before its call.
func (t *transition) endEarly(task *delegationrow.Task) {
	i := t.early(task.Id)
	if i < 0 {
		return
	}
	early := t.row.Early[i]
	t.row.Early = slices.Delete(t.row.Early, i, i+1)
	if early.Purged {
		task.Purged, task.Origin = true, nil
	}
	reply := topics.DelegationReply{
		SessionID: t.key, CallbackID: early.Id, Status: topics.DelegationStatus(early.Status), Content: early.Content,
		Code: early.Code, CallID: early.CallId, ToolID: early.ToolId, TotalTools: early.TotalTools, CallKey: early.CallKey,
	}
	t.end(task, reply, msTime(early.AtMs))
	t.answerCancel(task, reply)
}

// early returns the index of the end of a delegation that was read before its call, -1 if there is none.
func (t *transition) early(id string) int {
	return slices.IndexFunc(t.row.Early, func(x *delegationrow.Early) bool { return x.Id == id })
}
