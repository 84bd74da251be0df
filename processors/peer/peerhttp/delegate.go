package peerhttp

import (
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/admission"
	"github.com/turntable-streams/turntable/topics"
)

// delegation is a task of a peer that is accepted.
type delegation struct {
	in       peer.Inbound
	req      peerwire.Request
	agent    string
	prefer   preference
	location string // of an asynchronous task
	deadline time.Time
	lease    *lease
}

func (d *delegation) session() string { return peerwire.SessionID(d.in.ID, d.req.TaskID) }
func (d *delegation) task() task {
	return task{session: d.session(), inboundID: d.in.ID, taskID: d.req.TaskID}
}

// delegate runs the task of a peer.
func (h *Handler) delegate(r *request, _ string) answer {
	d := &delegation{}
	var refusal *peerwire.Refusal
	if late := r.Suspect(); late != nil {
		return h.turnAway(r, "", late)
	}
	d.in, refusal = admission.Admit(r.settings, r.Header.Values("Authorization"), func(in peer.Inbound) bool {
		d.lease = h.slots.acquire(in, r.settings.InboundMaxConcurrent)
		return d.lease != nil
	})
	if refusal != nil {
		return h.refuse(r, d.in.ID, peerwire.Request{}, refusal)
	}
	defer d.lease.end()
	if refusal := r.admit(d.in); refusal != nil {
		return h.turnAway(r, d.in.ID, refusal)
	}
	if !h.replies.follows.Serves() {
		return h.refuse(r, d.in.ID, peerwire.Request{}, unavailable("Replies cannot be followed yet."))
	}
	body, late := r.ReadBody(r.w)
	if late == nil {
		if d.req, refusal = peerwire.ReadRequest(body); refusal == nil {
			refusal = h.accept(r, d)
		}
	}
	switch {
	case (late != nil || refusal != nil) && d.lease.spare():
		// It repeats no task that runs, and the check of the limit comes first.
		return h.refuse(r, d.in.ID, d.req, peerwire.ConcurrencyLimit())
	case late != nil:
		return h.turnAway(r, d.in.ID, late)
	case refusal != nil:
		return h.refuse(r, d.in.ID, d.req, refusal)
	}
	return h.run(r, d)
}

// admit lets a peer with a valid token through the entrance.
func (r *request) admit(in peer.Inbound) *entrance.Refusal {
	if refusal := r.Accept(subjectOf(in.ID)); refusal != nil {
		return refusal
	}
	return r.Admit(auth.Caller{Subject: subjectOf(in.ID)})
}

// accept makes the checks of a request that was read.
func (h *Handler) accept(r *request, d *delegation) (refusal *peerwire.Refusal) {
	if d.agent, refusal = admission.Check(r.settings, d.in, d.req, h.agents); refusal != nil {
		return refusal
	}
	d.prefer = preferenceOf(r.Header.Values("Prefer"))
	switch {
	case d.req.CallbackToken == "":
	case !d.prefer.async:
		return invalid("A callback needs the header Prefer: respond-async.")
	case d.in.CallbackService == "":
		return invalid("No callback service is configured for the token.")
	}
	var ok bool
	if d.location, ok = locationOf(d.req.TaskID); !ok {
		d.prefer.async = false
	}
	most := h.config.RunTime
	if d.req.Timeout > 0 {
		most = min(most, d.req.Timeout)
	}
	d.deadline = h.config.Clock.Now().Add(most)
	return nil
}

// commands returns what the group is asked for. It is asked whether the task runs if that is what the answer may say.
func (d *delegation) commands(w *waiter) []topics.PeerCommand {
	plain := d.req
	plain.CallbackToken = ""
	run := topics.PeerCommand{
		Kind: topics.PeerRun, TaskID: d.req.TaskID, InboundID: d.in.ID, Agent: d.agent, Request: plain.Body(), Hash: w.hash,
		Waiter: w.id, Detached: d.prefer.async, DeadlineMS: d.deadline.UnixMilli(),
	}
	if !d.prefer.async {
		return []topics.PeerCommand{run}
	}
	if d.req.CallbackToken != "" {
		run.CallbackService, run.CallbackToken = d.in.CallbackService, d.req.CallbackToken
	}
	return []topics.PeerCommand{run, {
		Kind: topics.PeerAsk, TaskID: d.req.TaskID, InboundID: d.in.ID, Hash: w.hash, Waiter: w.id,
	}}
}

// run hands a task to the group and waits for its reply.
func (h *Handler) run(r *request, d *delegation) answer {
	if r.Context().Err() != nil {
		return answer{status: statusClientClosed}
	}
	w, stop := h.replies.wait(d.task(), d.req.Hash())
	defer stop()
	if !d.lease.bind(running{d.in.ID, d.req.TaskID, w.hash}) {
		return h.refuse(r, d.in.ID, d.req, peerwire.ConcurrencyLimit())
	}
	if refusal := h.publish(r, d.session(), w.id, d.commands(w)...); refusal != nil {
		return h.refuse(r, d.in.ID, d.req, refusal)
	}
	var reply topics.PeerReply
	var end ending
	if d.prefer.async {
		reply, end = h.poll(r.Context(), w, min(d.prefer.wait, maxWait))
	} else {
		reply, end = h.await(r.Context(), w, d.deadline.Sub(h.config.Clock.Now())+replyMargin)
	}
	if end != replied {
		d.lease.keep(d.deadline) // the task may run
	}
	return h.answerRun(r, d, w, reply, end)
}

func (h *Handler) answerRun(r *request, d *delegation, w *waiter, reply topics.PeerReply, end ending) answer {
	switch end {
	case replied:
		a, refusal := settled(reply)
		if reply.State == topics.PeerUnknown { // the group has dead-lettered the command
			refusal = peerwire.Internal()
		}
		if refusal != nil {
			return h.refuse(r, d.in.ID, d.req, refusal)
		}
		r.Record(auth.AuditWrite, d.session(), d.req.TaskID, a.status)
		return a
	case runs:
		r.Record(auth.AuditWrite, d.session(), d.req.TaskID, http.StatusAccepted)
		return continues(d.req.TaskID, d.location)
	case gone:
		if !d.prefer.async {
			h.leave(r, d.session(), topics.PeerCommand{
				TaskID: d.req.TaskID, InboundID: d.in.ID, Hash: w.hash, Waiter: w.id,
			})
		}
		r.Record(auth.AuditWrite, d.session(), d.req.TaskID, statusClientClosed)
		return answer{status: statusClientClosed}
	}
	return refused(unavailable("The task has no reply yet. Repeat the request."))
}

// settled returns the answer to a reply that ends a wait for a peer's task.
func settled(reply topics.PeerReply) (answer, *peerwire.Refusal) {
	switch {
	case reply.State == topics.PeerDone && reply.Body != nil:
		return answer{status: http.StatusOK, body: indented(reply.Body)}, nil
	case reply.State == topics.PeerConflict:
		return answer{}, peerwire.Conflict()
	case reply.State == topics.PeerNoRoom:
		return answer{}, &peerwire.Refusal{
			Status: http.StatusServiceUnavailable, Code: peerwire.CodeNoRoom, Text: "There is no room for the task.",
		}
	case reply.State == topics.PeerUnknown:
		return answer{}, &peerwire.Refusal{Status: http.StatusNotFound, Code: peerwire.CodeUnknownTask, Text: "Unknown task."}
	default:
		return answer{}, peerwire.Internal()
	}
}

// leave tells the group that the waiter of a command no longer waits. A failure is logged: the task then ends at its deadline.
func (h *Handler) leave(r *request, session string, c topics.PeerCommand) {
	c.Kind = topics.PeerLeave
	_ = h.publish(r, session, c.Waiter, c)
}

// continues answers a request whose task runs on.
func continues(taskID, location string) answer {
	body := object(struct {
		TaskID string           `json:"taskId"`
		Status topics.PeerState `json:"status"`
	}{taskID, topics.PeerRunning})
	return answer{status: http.StatusAccepted, body: body, location: location, async: true}
}
