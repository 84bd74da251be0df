package peer

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
)

// The domains of digests.
const (
	ofTask   = "peer task of a call"
	ofCall   = "peer call"
	ofRun    = "peer run of a task"
	ofJitter = "peer jitter"
)

// subAgentMark is in the session IDs of sub-agents.
const subAgentMark = "--"

// called begins the task of a call of the tool. The input of a call that cannot be read says all that its result depends on, so
// its result needs no task.
func (t *transition) called(e called) {
	if e.Call.ToolUseID == nil || *e.Call.ToolUseID == "" {
		t.DeadLetter(reasonCall)
		return
	}
	task := &peerrow.Task{
		Agent: e.Agent, ToolUseId: *e.Call.ToolUseID, ToolId: e.Call.ToolID, TotalTools: e.Call.TotalTools, CallId: e.ID,
		OpenedMs: t.timeOf(e.Record).UnixMilli(),
	}
	in, err := readInput(e.Call.Input)
	if err != nil {
		task.RunId, task.SettledMs = taskRun(t.key, e.Agent, callKey(task)), task.OpenedMs
		t.answerCall(task, failure(peerwire.CodeInvalidInput, err.Error()))
		return
	}
	task.Id, task.PeerId = in.taskID, in.peerID
	if task.Id == "" {
		task.Id = digestOf(ofTask, t.key, e.Agent, callKey(task)) // not longer, because HybridClaw distinguishes 32 characters only
	}
	task.Hash = digestOf(ofCall, t.key, e.Agent, callKey(task), task.Id, in.content, in.agentID, in.model)
	task.RunId = taskRun(t.key, task.Id, task.PeerId, task.Hash)
	task.ExpiresMs = t.timeOf(e.Record).Add(t.taskTime(in)).UnixMilli()
	task.TimeoutMs = in.timeout.Milliseconds()
	t.beginTask(task, peerwire.Request{
		TaskID: task.Id, Content: in.content, AgentID: in.agentID, Model: in.model,
		ParentRunID: t.parentRun(task), ParentSessionID: t.key,
	}, "")
}

// taskTime returns how long the task of a call may take.
func (t *transition) taskTime(in toolInput) time.Duration {
	if in.timeout > 0 {
		return min(in.timeout, t.config.TaskTime)
	}
	return t.config.TaskTime
}

// callKey identifies a call within a session: by its turntable.id, or by its tool use ID if it has none.
func callKey(task *peerrow.Task) string {
	if task.CallId != "" {
		return task.CallId
	}
	return "\x00" + task.ToolUseId
}

// parentRun returns the name of the run that the call is part of: that of the task of a peer, or the turn.
func (t *transition) parentRun(task *peerrow.Task) string {
	if t.row.Run != nil {
		return t.row.Run.RunId
	}
	return turnOf(task.CallId)
}

// turnOf returns the turn's part of the ID of a call or an output, empty if it has none: a foreign ID names no turn.
func turnOf(id string) string {
	turn, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return turn
}

// forbidden reports whether the session may not use the tool. The session of a peer's task without its run is one whose run
// is forgotten, or not read yet after a crash: nothing says what its token allows.
func (t *transition) forbidden() bool {
	switch {
	case strings.Contains(t.key, subAgentMark) && !t.config.SubAgents:
		return true
	case t.row.Run != nil:
		return !t.configuration().MayDelegate(t.row.Run.InboundId)
	default:
		return strings.HasPrefix(t.key, sessionPrefix)
	}
}

// delegated begins the task of a caller of the proxy.
func (t *transition) delegated(e commanded) {
	c := e.Command
	req, refusal := peerwire.ReadRequest(c.Request)
	if c.PeerID == "" || refusal != nil {
		t.DeadLetter(reasonRequest)
		return
	}
	opened := t.timeOf(e.Record)
	task := &peerrow.Task{
		Id: c.TaskID, PeerId: c.PeerID, Hash: c.Hash, Once: c.Once, Detached: c.Detached, TimeoutMs: req.Timeout.Milliseconds(),
		OpenedMs: opened.UnixMilli(), ExpiresMs: c.DeadlineMS,
	}
	if task.Hash == "" {
		task.Hash = req.Hash()
	}
	if task.ExpiresMs == 0 {
		task.ExpiresMs = opened.Add(t.config.TaskTime).UnixMilli()
	}
	// The same request is another task when the first one is forgotten: without the time, the audit would take its records for
	// repeats. The record's own timestamp is the same each time it is read.
	task.RunId = taskRun(t.key, task.Id, task.PeerId, task.Hash, strconv.FormatInt(max(e.At.UnixMilli(), 0), 10))
	req.TaskID, req.CallbackToken, req.Timeout = c.TaskID, "", 0
	t.beginTask(task, req, c.Waiter)
}

func taskRun(parts ...string) string { return "peer_" + digestOf(ofRun, parts...) }

// isCall reports whether a task is that of a call of the tool.
func isCall(x *peerrow.Task) bool { return x.ToolUseId != "" }

// isOpen reports whether a task has not ended.
func isOpen(x *peerrow.Task) bool { return x.Phase != peerrow.Task_SETTLED }

// isEarly reports whether only the end of a task was read.
func isEarly(x *peerrow.Task) bool { return x.RunId == "" }

func digestOf(domain string, parts ...string) string {
	d := digests.Of(domain, parts...)
	return hex.EncodeToString(d[:])
}
