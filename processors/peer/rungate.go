package peer

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// The bounds of what a row keeps of a run's gates and tools. Texts are in bytes.
const (
	maxGates       = 64
	maxGateID      = 256
	maxGateMessage = 1 << 10
	maxTools       = 100
	maxToolName    = 128
)

// outcomeGrace is how long after the deadline of a gate a run waits for its outcome.
const outcomeGrace = 5 * time.Minute

// viaTurn is the name of package turn in the requests of its gates.
const viaTurn = "turn"

// gateAsked keeps a gate of the run. The peer cannot answer it: if it stays open, the run needs an approval that was given before
// (runapproval.go), or it is rejected.
func (t *transition) gateAsked(e gateAsked) {
	g := e.Request
	if g.Origin.Via == via {
		t.listedAsked(e)
		return
	}
	run := t.listener()
	switch {
	case g.Shadow || run == nil || len(g.GateID) > maxGateID:
		return
	case g.Withdrawn != "": // its requester no longer waits; its outcome follows
		t.removeGates(run, func(known *peerrow.Gate) bool {
			return known.Id == g.GateID && known.Phase != peerrow.Gate_CLOSING && known.Phase != peerrow.Gate_CLOSED
		})
		return
	}
	known := gateOf(run, g.GateID)
	if known == nil && (slices.Contains(run.EndedGates, g.GateID) || len(run.Gates) >= maxGates) || known != nil && !known.Unread {
		return
	}
	gate := &peerrow.Gate{
		Id: g.GateID, Tool: truncate.Text(g.Tool, maxToolName), Message: truncate.Marked(g.Message, maxGateMessage),
		OpenMs: t.now.Add(t.config.GateGrace).UnixMilli(), Agent: e.Agent, Kind: string(g.Kind), Args: g.Args,
		ArgsSha256: g.ArgsSHA256, Dangerous: g.Dangerous, ExpiresMs: g.ExpiresMS, OfTurn: g.Origin.Via == viaTurn,
		Unlisted: !listable(g),
	}
	if gate.Unlisted || !t.room(gateSize(gate)+len(gate.Args)) || len(gate.Args)+recordRoom > t.config.RecordLimit {
		gate.Args, gate.Unlisted = nil, true
	}
	if !t.room(gateSize(gate)) {
		return
	}
	t.changed = true
	if known == nil {
		run.Gates = append(run.Gates, gate)
		return
	}
	run.Gates[slices.Index(run.Gates, known)] = gate
	t.closed(run, gate)
}

// listable reports whether a person can approve the call of a gate after its run was rejected. The answer to a question cannot be
// given later.
func listable(g topics.GateRequest) bool {
	allowed := len(g.Allowed) == 0 || slices.Contains(g.Allowed, topics.VerdictApprove)
	return g.Kind != topics.GateInput && allowed && len(g.Tool) <= maxToolName && len(g.ArgsSHA256) <= maxToolName
}

// size bounds what a gate adds to a row beside its arguments.
func gateSize(g *peerrow.Gate) int {
	return len(g.Id) + len(g.Claim) + len(g.Tool) + len(g.Message) + len(g.Agent) + len(g.Kind) + len(g.ArgsSha256) + 2*rowSlack
}

// gateOf returns a gate of the run that has not ended, or was closed; nil if it is not known.
func gateOf(r *peerrow.Run, id string) *peerrow.Gate {
	if i := slices.IndexFunc(r.Gates, func(g *peerrow.Gate) bool { return g.Id == id }); i >= 0 {
		return r.Gates[i]
	}
	return nil
}

// gateEnded removes a gate. Its ID is kept, because the request may be read after the outcome, or again. If the gate was closed
// because the peer cannot ask, its turn ends, and the run is rejected.
func (t *transition) gateEnded(e gateEnded) {
	if t.listedEnded(e) {
		return
	}
	o, run := e.Outcome, t.listener()
	if run == nil || o.Shadow || len(o.GateID) > maxGateID || slices.Contains(run.EndedGates, o.GateID) {
		return
	}
	g := gateOf(run, o.GateID)
	if o.Status == topics.GateCancelled && o.Cause == topics.CauseParentCannotAsk {
		if g == nil && len(run.Gates) < maxGates {
			g = &peerrow.Gate{Id: o.GateID, Tool: truncate.Text(o.Tool, maxToolName), Agent: e.Agent, OfTurn: true, Unread: true}
			run.Gates = append(run.Gates, g)
		}
		if g != nil {
			t.closed(run, g)
		}
		return
	}
	if g != nil && g.Phase == peerrow.Gate_CLOSING {
		t.unlist(run, g)
	}
	t.removeGates(run, func(known *peerrow.Gate) bool { return known == g })
	if len(run.EndedGates) >= maxGates {
		run.EndedGates = slices.Delete(run.EndedGates, 0, 1)
	}
	if t.room(len(o.GateID) + rowSlack) {
		run.EndedGates = append(run.EndedGates, o.GateID)
	}
	t.changed = true
}

// closed applies the end of a gate that was closed because the peer cannot ask. A gate that is not known to be closed was closed
// before a crash. The turn ends with the outcome of its own gate; that of another one must be told to end.
func (t *transition) closed(run *peerrow.Run, g *peerrow.Gate) {
	t.changed = true
	if run == t.row.Early {
		g.Phase = peerrow.Gate_CLOSED
		return
	}
	if g.Phase != peerrow.Gate_CLOSING && g.Phase != peerrow.Gate_CLOSED && !g.Unread {
		t.list(run, g)
	}
	g.Phase, g.Args, g.OpenMs = peerrow.Gate_CLOSED, nil, 0
	t.setClock(run)
	if !g.OfTurn {
		t.reject(run)
	}
}

func (t *transition) removeGates(run *peerrow.Run, which func(*peerrow.Gate) bool) {
	n := len(run.Gates)
	run.Gates = slices.DeleteFunc(run.Gates, which)
	t.changed = t.changed || len(run.Gates) != n
	t.setClock(run)
}

const cannotAskText = "the caller cannot ask a person"

// reject cancels the turn of a run and rejects the run.
func (t *transition) reject(run *peerrow.Run) {
	if run.Phase == peerrow.Run_RUNNING {
		t.cancelTurn(run, cannotAskText)
		t.finish(run, rejectionOf(run))
	}
}

// rejectionOf returns the reply of a run whose turn ended because the peer cannot ask a person.
func rejectionOf(r *peerrow.Run) peerwire.Reply {
	tool, message := "", ""
	if i := slices.IndexFunc(r.Gates, func(g *peerrow.Gate) bool { return g.Phase == peerrow.Gate_CLOSED || g.Phase == peerrow.Gate_CLOSING }); i >= 0 {
		tool, message = r.Gates[i].Tool, r.Gates[i].Message
	}
	return peerwire.Reply{Status: peerwire.StatusRejected, PendingApprovalSummary: peerwire.ApprovalSummary(tool, message)}
}

// cannotAsk reports whether a turn ended because the peer cannot ask a person.
func cannotAsk(r *peerrow.Run, code topics.Code) bool {
	closing := func(g *peerrow.Gate) bool { return g.Phase == peerrow.Gate_CLOSING || g.Phase == peerrow.Gate_CLOSED }
	return code == topics.CodeParentCannotAsk || code == topics.CodeCancelled && slices.ContainsFunc(r.Gates, closing)
}

// waits reports whether a run waits until a person has decided.
func (t *transition) waits(run *peerrow.Run) bool { return t.config.WaitForApproval && run.Detached }

// waitFor lets the run wait for the decision about a gate. Who opened the gate withdraws it at its deadline at the latest.
func (t *transition) waitFor(g *peerrow.Gate) {
	until := t.now.Add(approval.MaxTTL).UnixMilli()
	if g.ExpiresMs > 0 {
		until = min(until, g.ExpiresMs)
	}
	g.Phase, g.OpenMs, t.changed = peerrow.Gate_WAITING, until+outcomeGrace.Milliseconds(), true
}

// setClock stops the clock of a run while it waits for a person.
func (t *transition) setClock(run *peerrow.Run) {
	waiting := slices.ContainsFunc(run.Gates, func(g *peerrow.Gate) bool { return g.Phase == peerrow.Gate_WAITING })
	switch {
	case waiting && run.PausedMs == 0:
		run.PausedMs, t.changed = t.nowMS(), true
	case !waiting && run.PausedMs != 0:
		run.ExpiresMs += max(0, t.nowMS()-run.PausedMs)
		run.PausedMs, t.changed = 0, true
	}
}

// inFlight reports whether a record about the gate is on its way.
func inFlight(g *peerrow.Gate) bool {
	return g.Phase == peerrow.Gate_CLAIMING || g.Phase == peerrow.Gate_APPROVING || g.Phase == peerrow.Gate_CLOSING
}

// expiryOf returns when the run is given up, 0 if its clock is stopped. A record that is on its way comes first, if it comes back
// in time.
func expiryOf(r *peerrow.Run) int64 {
	if r.PausedMs != 0 {
		return 0
	}
	back := int64(0)
	for _, g := range r.Gates {
		if inFlight(g) && (back == 0 || g.OpenMs < back) {
			back = g.OpenMs
		}
	}
	return max(r.ExpiresMs, back, 1)
}

// nextGate returns when the first gate is due, 0 if there is none.
func nextGate(r *peerrow.Run) (at int64) {
	for _, g := range r.Gates {
		if g.Phase != peerrow.Gate_CLOSED && (at == 0 || g.OpenMs < at) {
			at = max(g.OpenMs, 1)
		}
	}
	return at
}

// gatesDue does what is due of the gates: those that stayed open ask for the approvals of their label together, and records that
// did not come back are written again.
func (t *transition) gatesDue(run *peerrow.Run) {
	claims, open := []string{}, false
	for _, g := range slices.Clone(run.Gates) {
		if g.OpenMs > t.nowMS() {
			continue
		}
		switch g.Phase {
		case peerrow.Gate_OPEN:
			open = true
		case peerrow.Gate_CLAIMING:
			claims = append(claims, g.Claim)
		case peerrow.Gate_APPROVING:
			t.approve(run, g)
		case peerrow.Gate_CLOSING: // the group of gates does not answer
			t.stayedClosing(run, g)
		case peerrow.Gate_WAITING:
			t.removeGates(run, func(known *peerrow.Gate) bool { return known == g })
		}
	}
	if open {
		claims = append(claims, t.openClaim(run))
	}
	slices.Sort(claims)
	for _, id := range slices.Compact(claims) {
		t.claim(run, id)
	}
}

// stayedClosing ends the turn of a gate that has no outcome. Only a turn of this library is known to run nothing more after it was
// cancelled, so its output is waited for.
func (t *transition) stayedClosing(run *peerrow.Run, g *peerrow.Gate) {
	if !g.OfTurn {
		t.closed(run, g)
		return
	}
	t.closeGate(run, g)
	t.cancelTurn(run, cannotAskText)
}

// toolUsed keeps the name of a tool that the run uses.
func (t *transition) toolUsed(e called) {
	run, name := t.listener(), truncate.Text(*e.Call.Name, maxToolName)
	if run == nil || len(run.ToolsUsed) >= maxTools || slices.Contains(run.ToolsUsed, name) || !t.room(len(name)+rowSlack) {
		return
	}
	run.ToolsUsed, t.changed = append(run.ToolsUsed, name), true
}
