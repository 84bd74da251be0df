package peer

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
)

// After a crash the records of different topics come in another order. A message may be sent and answered before the crash, and
// its output read before the command that begins the run, because the row of the run was lost. The turn ignores the repeated
// message, so there is no other output. Such an output is kept until the command is read again, and so are gates and tools.

// sessionPrefix begins the sessions of peerwire.SessionID. Other sessions have no runs.
const sessionPrefix = "peer:"

// earlyTask is the task ID of a reply whose task is not known yet.
const earlyTask = "early"

// listener returns the run that gates and tools belong to, nil if there is none: a run that has ended needs no more of them.
func (t *transition) listener() *peerrow.Run {
	switch run := t.row.Run; {
	case run == nil:
		return t.early()
	case run.Phase == peerrow.Run_RUNNING:
		return run
	default:
		return nil
	}
}

// early returns what is kept for a run whose command is not read yet.
func (t *transition) early() *peerrow.Run {
	if !strings.HasPrefix(t.key, sessionPrefix) {
		return nil
	}
	if t.row.Early == nil {
		t.row.Early, t.changed = &peerrow.Run{ExpiresMs: t.now.Add(t.config.RunTime).UnixMilli()}, true
	}
	return t.row.Early
}

// answeredEarly keeps the output of a run whose command is not read yet.
func (t *transition) answeredEarly(e outputArrived) {
	request := e.Output.RequestID
	if request == nil || !strings.HasPrefix(*request, runPrefix) || len(*request) > maxWaiter {
		return
	}
	early := t.early()
	if early == nil {
		return
	}
	r := replyOf(early, e.Output)
	r.TaskID = earlyTask
	body := r.Body()
	if t.room(len(body) - len(early.Reply) + len(*request) + len(e.Agent) + 2*rowSlack) {
		early.Agent, early.RunId, early.Reply, t.changed = e.Agent, *request, body, true
	}
}

// catchUp applies to a run what was read of it before its command.
func (t *transition) catchUp(run, early *peerrow.Run) {
	if early == nil {
		return
	}
	for _, tool := range early.ToolsUsed {
		if t.room(len(tool) + rowSlack) {
			run.ToolsUsed = append(run.ToolsUsed, tool)
		}
	}
	for _, id := range early.EndedGates {
		if t.room(len(id) + rowSlack) {
			run.EndedGates = append(run.EndedGates, id)
		}
	}
	for _, g := range early.Gates {
		if t.room(gateSize(g) + len(g.Args)) {
			run.Gates = append(run.Gates, g)
		}
	}
	for _, l := range early.Listed {
		if l.GateId = listedID(t.key, run, l.Parent); t.room(len(l.GateId) + len(l.Parent) + len(l.Agent) + maxBy + 4*rowSlack) {
			run.Listed = append(run.Listed, l)
		}
	}
	for _, g := range slices.Clone(run.Gates) {
		if g.Phase == peerrow.Gate_CLOSED {
			g.Phase = peerrow.Gate_OPEN
			t.closed(run, g)
		}
	}
	if early.RunId != run.RunId || early.Agent != run.Agent {
		return
	}
	if r, err := peerwire.ReadReply(early.Reply, earlyTask); err == nil {
		t.finish(run, r)
	}
}
