package peer

import (
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/peer/internal/audit"
	"github.com/turntable-streams/turntable/topics"
)

// The room that a reply needs.
const (
	// recordRoom is what the records of a run have beside a content or a reply: IDs, texts and their escapes.
	recordRoom = 24 << 10
	// rowSlack is what a row has beside a text that is added to it.
	rowSlack = 64
	// minReply is the room for the smallest replies, which have no result.
	minReply = 40 << 10
)

const reasonReply = "peer: the reply cannot be read"

// maxReply is the largest body of a reply. The rest of the row is for the tasks that the run delegates further.
func (t *transition) maxReply() int {
	return max(minReply, min(maxResult+minReply, t.config.RowLimit/8*5))
}

// runReserve is the room that is kept free for the reply of a run: it must fit whenever the run ends.
func (t *transition) runReserve() int {
	if run := t.row.Run; run != nil && run.Phase != peerrow.Run_ENDED {
		return max(0, t.maxReply()-len(run.Reply)) + 4*rowSlack
	}
	return 0
}

// answered ends the run with the output of its turn.
func (t *transition) answered(e outputArrived) {
	run := t.row.Run
	if run == nil {
		t.answeredEarly(e)
		return
	}
	request := e.Output.RequestID
	if e.Agent == run.Agent && (request == nil || *request == run.RunId) {
		t.finish(run, replyOf(run, e.Output))
	}
}

// replyOf returns the outcome that an output states.
func replyOf(r *peerrow.Run, o topics.Output) peerwire.Reply {
	switch {
	case o.Error != nil && cannotAsk(r, o.Error.Code):
		return rejectionOf(r)
	case o.Error != nil:
		return failed(o.Error.Message)
	case o.Status != nil && *o.Status == "error":
		return failed(o.Content)
	default:
		return peerwire.Reply{Status: peerwire.StatusSuccess, Result: o.Content}
	}
}

// failed returns a reply with an error.
func failed(text string) peerwire.Reply {
	if peerwire.Trim(text) == "" {
		text = "the turn failed"
	}
	return peerwire.Reply{Status: peerwire.StatusError, Error: truncate.Marked(text, peerwire.MaxDetail)}
}

// finish writes to peer-commands how the run ended, unless an end is on its way or was read. r has the outcome. A result that
// does not fit is cut: the run was paid for, and a part with a note is worth more to the peer than an error.
func (t *transition) finish(run *peerrow.Run, r peerwire.Reply) {
	if run.Phase != peerrow.Run_RUNNING {
		return
	}
	r.TaskID, r.PeerInstanceID, r.PeerRunID, r.PeerSessionID = run.TaskId, run.InstanceId, run.RunId, t.key
	r.ToolsUsed, r.AgentID, r.Model = run.ToolsUsed, run.Agent, run.Model
	r, ok := r.Shortened(t.fits)
	if !ok {
		r.Thrown, r.Error = true, "the reply does not fit into a record"
	}
	run.Phase, run.Reply, run.Thrown, t.changed = peerrow.Run_ENDING, r.Body(), r.Thrown, true
	t.writeEnd(run)
}

// fits reports whether a reply fits into the row and into all records that it is written to. A callback has it as a text,
// which is escaped once more.
func (t *transition) fits(body []byte) bool {
	quoted, _ := jsontext.AppendQuote(nil, body)
	return len(body) <= t.maxReply() && len(quoted)+recordRoom <= t.config.RecordLimit
}

// writeEnd writes the end of a run to peer-commands.
func (t *transition) writeEnd(run *peerrow.Run) {
	run.DueMs, t.changed = t.now.Add(writeAgain).UnixMilli(), true
	c := topics.PeerCommand{
		Kind: topics.PeerEnd, TaskID: run.TaskId, InboundID: run.InboundId, Hash: run.Hash, Reply: run.Reply,
	}
	if run.Thrown {
		c.Code = string(peerwire.CodeInternal)
	}
	machine.Emit(&t.Effects, t.own.PeerCommands, t.key, run.RunId+"/end", c)
}

// ended ends the run: the first end of it that is read counts.
func (t *transition) ended(e commanded) {
	c, run := e.Command, t.runOf(e.Command)
	reply, err := peerwire.ReadReply(c.Reply, c.TaskID)
	if err != nil {
		t.DeadLetter(reasonReply)
		return
	}
	if run == nil || run.Phase == peerrow.Run_ENDED || reply.PeerRunID != run.RunId {
		return // that of a run that is forgotten
	}
	reply.Thrown = c.Code == string(peerwire.CodeInternal)
	at := t.timeOf(e.Record)
	received := topics.PeerAudit{TaskID: run.TaskId, SessionID: t.key, RunID: run.RunId, InboundID: run.InboundId}
	t.auditRun(run, "end", audit.Completed(received, reply, at))
	machine.Emit(&t.Effects, t.own.PeerReplies, t.key, run.RunId+"/reply", topics.PeerReply{
		TaskID: run.TaskId, InboundID: run.InboundId, State: topics.PeerDone, Hash: run.Hash, Body: c.Reply,
	})
	if run.CallbackService != "" {
		machine.Emit(&t.Effects, t.own.PeerCallbacks, t.key, run.RunId+"/callback", callbackOf(run, t.key, c.Reply, at))
	}
	t.keepEnded(run, c.Reply, at.UnixMilli())
	t.row.Run.Rejected = reply.Status == peerwire.StatusRejected
	t.settleListed(t.row.Run)
}

// keepEnded leaves of the run what a repeated request needs, and the calls of a turn that still runs.
func (t *transition) keepEnded(run *peerrow.Run, reply []byte, at int64) {
	t.changed = true
	t.row.Run = &peerrow.Run{
		TaskId: run.TaskId, InboundId: run.InboundId, Agent: run.Agent, Hash: run.Hash, RunId: run.RunId, InstanceId: run.InstanceId,
		Hops: run.Hops, Chain: run.Chain, Phase: peerrow.Run_ENDED, Reply: reply, OpenedMs: run.OpenedMs, EndedMs: at,
		Listed: run.Listed, Withdrawn: run.Withdrawn,
	}
	if proto.Size(t.row)+rowSlack > t.config.RowLimit && !t.room(rowSlack) { // the limit was lowered while the task ran
		t.row.Run.Reply = peerwire.Reply{
			TaskID: run.TaskId, PeerInstanceID: run.InstanceId, PeerRunID: run.RunId, PeerSessionID: t.key,
			Error: "the reply is no longer stored", Thrown: true,
		}.Body()
	}
}
