package peer

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/peer/wire"
)

// The bounds of what a row keeps of a run's gates and tools. Texts are in bytes.
const (
	maxGates       = 64
	maxGateID      = 256
	maxGateMessage = 1 << 10
	maxTools       = 100
	maxToolName    = 128
)

// gateAsked keeps a gate of the run, which is rejected if the gate stays open: the peer cannot answer it.
func (t *transition) gateAsked(e GateAsked) {
	g, run := e.Request, t.listener()
	switch {
	case g.Shadow || run == nil || len(g.GateID) > maxGateID:
		return
	case g.Withdrawn != "": // its requester no longer waits; its outcome follows
		t.removeGate(run, g.GateID)
		return
	}
	known := slices.Contains(run.EndedGates, g.GateID) ||
		slices.ContainsFunc(run.Gates, func(known *Gate) bool { return known.Id == g.GateID })
	gate := &Gate{
		Id: g.GateID, Tool: truncate.Text(g.Tool, maxToolName), Message: truncate.Marked(g.Message, maxGateMessage),
		OpenMs: t.now.Add(t.rules.GateGrace).UnixMilli(),
	}
	if known || len(run.Gates) >= maxGates || !t.room(len(gate.Id)+len(gate.Tool)+len(gate.Message)+rowSlack) {
		return
	}
	run.Gates, t.changed = append(run.Gates, gate), true
}

// gateEnded removes a gate. Its ID is kept, because the request may be read after the outcome, or again.
func (t *transition) gateEnded(e GateEnded) {
	id, run := e.Outcome.GateID, t.listener()
	if run == nil || len(id) > maxGateID || slices.Contains(run.EndedGates, id) {
		return
	}
	t.removeGate(run, id)
	if len(run.EndedGates) >= maxGates {
		run.EndedGates = slices.Delete(run.EndedGates, 0, 1)
	}
	if t.room(len(id) + rowSlack) {
		run.EndedGates = append(run.EndedGates, id)
	}
	t.changed = true
}

func (t *transition) removeGate(run *Run, id string) {
	n := len(run.Gates)
	run.Gates = slices.DeleteFunc(run.Gates, func(g *Gate) bool { return g.Id == id })
	t.changed = t.changed || len(run.Gates) != n
}

// openGate returns the gate that counts as open first, nil if the run has none.
func (r *Run) openGate() (first *Gate) {
	for _, g := range r.Gates {
		if first == nil || g.OpenMs < first.OpenMs {
			first = g
		}
	}
	return first
}

// reject ends a run because of a gate. Its turn continues: a person may still answer, but the peer is not told.
func (t *transition) reject(run *Run, g *Gate) {
	t.finish(run, wire.Reply{Status: wire.StatusRejected, PendingApprovalSummary: wire.ApprovalSummary(g.Tool, g.Message)})
}

// toolUsed keeps the name of a tool that the run uses.
func (t *transition) toolUsed(e Called) {
	run, name := t.listener(), truncate.Text(*e.Call.Name, maxToolName)
	if run == nil || len(run.ToolsUsed) >= maxTools || slices.Contains(run.ToolsUsed, name) || !t.room(len(name)+rowSlack) {
		return
	}
	run.ToolsUsed, t.changed = append(run.ToolsUsed, name), true
}
