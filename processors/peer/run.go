package peer

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/peer/internal/audit"
	"github.com/turntable-streams/turntable/topics"
)

const maxWaiter = 256 // bytes of the ID of a waiter

// isOf reports whether a command is about the run. It is the only one of its session, which is derived from label and task ID.
func isOf(r *peerrow.Run, c topics.PeerCommand) bool {
	return r.InboundId == c.InboundID && r.TaskId == c.TaskID
}

// runOf returns the run that a command is about, nil if there is none.
func (t *transition) runOf(c topics.PeerCommand) *peerrow.Run {
	if run := t.row.Run; run != nil && isOf(run, c) {
		return run
	}
	return nil
}

// accepted begins the task of a peer, or lets a repeated request wait for it. The door has made all checks.
func (t *transition) accepted(e commanded) {
	c := e.Command
	req, refusal := peerwire.ReadRequest(c.Request)
	switch {
	case refusal != nil || req.TaskID != c.TaskID || c.InboundID == "" || c.Agent == "" || c.Hash == "" ||
		len(c.Waiter) > maxWaiter || peerwire.Length(t.key) > peerwire.MaxID:
		t.DeadLetter(reasonRequest)
	case t.row.Run != nil:
		t.acceptedAgain(c)
	default:
		t.begin(e, req)
	}
}

// acceptedAgain answers a request for a task that is known.
func (t *transition) acceptedAgain(c topics.PeerCommand) {
	run := t.row.Run
	switch {
	case !isOf(run, c) || run.Hash != c.Hash:
		t.tell(c, topics.PeerConflict)
	case run.Phase == peerrow.Run_ENDED:
		t.tell(c, topics.PeerDone)
	case !t.join(run, c):
		t.tell(c, topics.PeerNoRoom)
	}
}

// join lets another request wait for the run. It returns false if there is no room for it: the request must not believe that
// the run continues for its sake.
func (t *transition) join(run *peerrow.Run, c topics.PeerCommand) bool {
	if c.Waiter != "" && !slices.Contains(run.Waiters, c.Waiter) {
		if len(run.Waiters) >= maxWaiters || !t.room(len(c.Waiter)+rowSlack) {
			return false
		}
		run.Waiters = append(run.Waiters, c.Waiter)
		t.changed = true
	}
	if c.Detached && !run.Detached {
		run.Detached, t.changed = true, true
	}
	first := run.CallbackService == "" && c.CallbackService != "" && run.Phase == peerrow.Run_RUNNING
	if first && t.room(len(c.CallbackService)+len(c.CallbackToken)+rowSlack) {
		run.CallbackService, run.CallbackToken, t.changed = c.CallbackService, c.CallbackToken, true
	}
	return true
}

// begin makes the row of a task and sends its message.
func (t *transition) begin(e commanded, req peerwire.Request) {
	c, at := e.Command, t.timeOf(e.Record)
	expires := at.Add(t.config.RunTime).UnixMilli()
	if c.DeadlineMS > 0 {
		expires = min(expires, c.DeadlineMS)
	}
	run := &peerrow.Run{
		TaskId: c.TaskID, InboundId: c.InboundID, Agent: c.Agent, Hash: c.Hash, RunId: runID(e),
		InstanceId:  t.configuration().InstanceID,
		ParentRunId: req.ParentRunID, ParentSessionId: req.ParentSessionID, ParentInstanceId: req.ParentInstanceID, Model: req.Model,
		Hops: int32(req.Path.Hops), Chain: req.Path.Chain, Detached: c.Detached,
		CallbackService: c.CallbackService, CallbackToken: c.CallbackToken, OpenedMs: at.UnixMilli(), ExpiresMs: expires,
	}
	if c.Waiter != "" {
		run.Waiters = []string{c.Waiter}
	}
	early := t.row.Early
	t.row.Run, t.row.Early = run, nil
	if !t.room(0) {
		t.row.Run, t.row.Early = nil, early
		t.tell(c, topics.PeerNoRoom)
		return
	}
	t.changed = true
	t.auditRun(run, "received", audit.Received(req, run.InboundId, run.Agent, t.key, run.RunId, at))
	t.catchUp(run, early)
	message := messageOf(run, t.key, req, at)
	agent, known := t.agents[run.Agent]
	switch {
	case run.Phase != peerrow.Run_RUNNING: // it was answered before a crash
	case run.ExpiresMs <= t.nowMS():
		t.timeOut(run) // a crash may have sent the message already, so that the turn must be cancelled too
	case !known: // the door was given another list of agents than the group
		t.finish(run, peerwire.Reply{Thrown: true, Error: "the agent does not run tasks"})
	case len(message.Content)+len(message.Metadata)+recordRoom > t.config.RecordLimit:
		t.finish(run, peerwire.Reply{Thrown: true, Error: "the content does not fit into a record"})
	default:
		machine.Emit(&t.Effects, agent.MessageInput, t.key, run.RunId+"/message", message)
	}
}

// runID names a run. It depends on nothing but the record, so that the message of a run that begins again after a crash has
// the same request_id, and the turn recognizes it.
func runID(e commanded) string {
	at := strconv.FormatInt(max(e.At.UnixMilli(), 0), 10)
	d := digests.Of("peer run", e.Command.InboundID, e.Command.TaskID, e.Command.Hash, at)
	return fmt.Sprintf("%s%s_%s", runPrefix, at, hex.EncodeToString(d[:4]))
}

const runPrefix = "peer_"

// askedRun says how the task of a peer is.
func (t *transition) askedRun(e commanded) {
	switch run := t.runOf(e.Command); {
	case run == nil:
		t.tell(e.Command, topics.PeerUnknown)
	case run.Phase == peerrow.Run_ENDED:
		t.tell(e.Command, topics.PeerDone)
	default:
		t.tell(e.Command, topics.PeerRunning)
	}
}

// leftRun removes a waiter. The last one ends the run, unless it is detached.
func (t *transition) leftRun(e commanded) {
	run := t.runOf(e.Command)
	if run == nil {
		return
	}
	i := slices.Index(run.Waiters, e.Command.Waiter)
	if i < 0 {
		return
	}
	run.Waiters, t.changed = slices.Delete(run.Waiters, i, i+1), true
	if len(run.Waiters) == 0 && !run.Detached {
		t.stop(run, "cancelled")
	}
}

// cancelledRun ends the run, withdraws the requests that it has listed, and says how the task is if somebody waits for the answer.
func (t *transition) cancelledRun(e commanded) {
	if run := t.runOf(e.Command); run != nil {
		t.stop(run, "cancelled")
		t.withdrawAll(run)
	}
	t.askedRun(e)
}

// tell writes how a task is for the waiter of a command, if it has one.
func (t *transition) tell(c topics.PeerCommand, state topics.PeerState) {
	if c.Waiter == "" {
		return
	}
	r := topics.PeerReply{TaskID: c.TaskID, InboundID: c.InboundID, Waiter: c.Waiter, State: state, Hash: c.Hash}
	switch state {
	case topics.PeerDone:
		r.Hash, r.Body = t.row.Run.Hash, t.row.Run.Reply
	case topics.PeerRunning:
		r.Hash = t.row.Run.Hash
	}
	machine.Emit(&t.Effects, t.own.PeerReplies, t.key, peerwire.TaskKey(c.InboundID, c.TaskID)+"/"+string(state)+"/"+c.Waiter, r)
}
