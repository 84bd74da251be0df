package peerhttp

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// errand is a task that a caller of this instance sends to a peer.
type errand struct {
	forwarding
	body    []byte // of the request to the peer
	hash    string
	session string
	timeout time.Duration
	async   bool
	wait    time.Duration
}

// forward sends a task to a peer.
func (h *Handler) forward(r *request, _ string) answer {
	if refusal := r.Authenticate(auth.Write); refusal != nil {
		return closed(r, refusal)
	}
	switch {
	case !r.settings.Enabled:
		return refused(peerwire.Disabled())
	case !h.replies.follows.Serves():
		return refused(unavailable("Replies cannot be followed yet."))
	}
	body, late := r.ReadBody(r.w)
	if late != nil {
		return closed(r, late)
	}
	f, refusal := readForwarding(body)
	if refusal != nil {
		return refused(refusal)
	}
	e := &errand{forwarding: f, session: sessionOf(r.Caller, f)}
	if f.parentSessionID != "" {
		if refusal := r.Session(f.parentSessionID); refusal != nil {
			return closed(r, refusal)
		}
	}
	prefer := preferenceOf(r.Header.Values("Prefer"))
	e.async, e.wait = prefer.async, prefer.wait
	e.timeout = cmp.Or(f.timeout, timeoutTo(r.settings, f.peerID))
	e.body = peerwire.Request{
		TaskID: f.taskID, ParentInstanceID: r.settings.InstanceID, Content: f.content, ParentRunID: f.parentRunID,
		ParentSessionID: f.parentSessionID, AgentID: f.agentID, Model: f.model, Timeout: f.timeout,
	}.Body()
	req, refusal := peerwire.ReadRequest(e.body) // as the group and the peer read it
	if refusal != nil {
		return e.refused(refusal)
	}
	e.hash = req.Hash()
	return h.send(r, e)
}

// timeoutTo is how long a task for a peer may take that does not say so. The group refuses peers that do not exist.
func timeoutTo(s *peer.Settings, peerID string) time.Duration {
	if p, ok := s.Peer(peerID); ok {
		return p.Timeout
	}
	return peer.DefaultTimeout
}

// sessionOf returns the session of a task: that which the request names, or one of the caller for the task.
func sessionOf(c auth.Caller, f forwarding) string {
	if f.parentSessionID != "" {
		return f.parentSessionID
	}
	d := digests.Of("peer proxy session", c.Name(), f.peerID, f.taskID)
	return "peer-proxy:" + hex.EncodeToString(d[:])
}

// send hands a task to the group and waits for its outcome.
func (h *Handler) send(r *request, e *errand) answer {
	if r.Context().Err() != nil {
		return answer{status: statusClientClosed}
	}
	w, stop := h.replies.wait(task{session: e.session, peerID: e.peerID, taskID: e.taskID}, e.hash)
	defer stop()
	deadline := h.config.Clock.Now().Add(e.timeout)
	commands := []topics.PeerCommand{{
		Kind: topics.PeerDelegate, TaskID: e.taskID, PeerID: e.peerID, Request: e.body, Hash: w.hash, Waiter: w.id,
		Once: !e.async, Detached: e.async, DeadlineMS: deadline.UnixMilli(),
	}}
	if e.async {
		commands = append(commands, topics.PeerCommand{
			Kind: topics.PeerAsk, TaskID: e.taskID, PeerID: e.peerID, Hash: w.hash, Waiter: w.id,
		})
	}
	if refusal := h.publish(r, e.session, w.id, commands...); refusal != nil {
		return e.refused(refusal)
	}
	var reply topics.PeerReply
	var end ending
	if e.async {
		reply, end = h.poll(r.Context(), w, e.wait)
	} else {
		reply, end = h.await(r.Context(), w, e.timeout+replyMargin)
	}
	a := h.answerErrand(r, e, w, reply, end)
	r.Record(auth.AuditWrite, e.session, e.taskID, a.status)
	return a
}

func (h *Handler) answerErrand(r *request, e *errand, w *waiter, reply topics.PeerReply, end ending) answer {
	switch end {
	case replied:
		return e.outcome(reply)
	case runs:
		return e.continues()
	}
	if !e.async && end != stopped {
		h.leave(r, e.session, topics.PeerCommand{TaskID: e.taskID, PeerID: e.peerID, Hash: w.hash, Waiter: w.id})
	}
	switch {
	case end == gone:
		return answer{status: statusClientClosed}
	case end == silent && !e.async:
		return e.outcome(topics.PeerReply{State: topics.PeerDone, Code: string(peerwire.CodeTimeout)})
	default:
		return e.refused(unavailable("The task has no outcome yet. Repeat the request with the same taskId."))
	}
}

func (e *errand) continues() answer {
	body := object(struct {
		TaskID string           `json:"taskId"`
		PeerID string           `json:"peerId"`
		Status topics.PeerState `json:"status"`
	}{e.taskID, e.peerID, topics.PeerRunning})
	return answer{status: http.StatusAccepted, body: body, async: true}
}

// refused answers a request whose task was not sent.
func (e *errand) refused(refusal *peerwire.Refusal) answer {
	refusal.TaskID, refusal.PeerID = e.taskID, e.peerID
	return refused(refusal)
}
