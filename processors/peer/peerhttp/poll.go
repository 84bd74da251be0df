package peerhttp

import (
	"net/http"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/admission"
	"github.com/turntable-streams/turntable/topics"
)

// ask answers how a task of the peer is. With wait, it waits until the task has ended.
func (h *Handler) ask(r *request, taskID string) answer { return h.inspect(r, taskID) }

// cancel cancels a task of the peer. With wait, it waits until the task has ended.
func (h *Handler) cancel(r *request, taskID string) answer {
	return h.inspect(r, taskID, topics.PeerCancel)
}

// inspect writes commands about a task, and answers how it is. It takes no slot: no task begins.
func (h *Handler) inspect(r *request, taskID string, kinds ...topics.PeerCommandKind) answer {
	if late := r.Suspect(); late != nil {
		return h.turnAway(r, "", late)
	}
	in, refusal := admission.Admit(r.settings, r.Header.Values("Authorization"), func(peer.Inbound) bool { return true })
	if refusal != nil {
		return h.refuse(r, in.ID, peerwire.Request{}, refusal)
	}
	if refusal := r.admit(in); refusal != nil {
		return closed(r, refusal)
	}
	wait, ok := waitOf(r.URL.Query().Get("wait"))
	switch {
	case !ok:
		return refused(invalid("wait is not a time such as 25s."))
	case !h.replies.follows.Serves():
		return refused(unavailable("Replies cannot be followed yet."))
	}
	session := peerwire.SessionID(in.ID, taskID)
	w, stop := h.replies.wait(task{session: session, inboundID: in.ID, taskID: taskID}, "")
	defer stop()
	var commands []topics.PeerCommand
	for _, kind := range append(kinds, topics.PeerAsk) {
		commands = append(commands, topics.PeerCommand{Kind: kind, TaskID: taskID, InboundID: in.ID, Waiter: w.id})
	}
	if refusal := h.publish(r, session, w.id, commands...); refusal != nil {
		return refused(refusal)
	}
	if len(kinds) > 0 {
		r.Record(auth.AuditCancel, session, taskID, http.StatusAccepted)
	}
	switch reply, end := h.poll(r.Context(), w, wait); end {
	case replied:
		a, refusal := settled(reply)
		if refusal != nil {
			return refused(refusal)
		}
		return a
	case runs:
		a := continues(taskID, "")
		a.async = false
		return a
	case gone:
		return answer{status: statusClientClosed}
	default:
		return refused(unavailable("The group of tasks does not answer. Repeat the request."))
	}
}
