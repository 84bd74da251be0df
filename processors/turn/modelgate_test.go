package turn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// The gate that decides about the calls of the model test.

// requested takes note of a gate request, as the gate's group does.
func (m *model) requested(g gateRequested) {
	i := slices.IndexFunc(m.gates, func(r *requestedGate) bool { return r.GateID == g.GateID })
	if g.Withdrawn == "" && i < 0 {
		m.gates = append(m.gates, &requestedGate{gateRequested: g})
	}
}

// judgeCall says what is wrong with a call that was handed out: nothing runs without its approval.
func (m *model) judgeCall(id string, c called) {
	if !m.gated(c.Name) {
		return
	}
	for _, r := range m.logs["gate-outcomes"] {
		o, ok := r.meant.(meantOutcome)
		if ok && o.callID == id && o.status == topics.GateApproved && !o.foreign && !o.wrong && o.tool == *c.Name && *c.Name != "delete" &&
			string(c.Input) == cmp.Or(o.args, modelArgs) {
			return
		}
	}
	m.failf("%s runs without an approval of %s", id, c.Input)
}

// decide is the gate: it writes the outcome of a gate, repeats one, or writes one that is not to be trusted.
func (g generator) decide() {
	if len(g.gates) == 0 {
		return
	}
	recent := g.gates[max(0, len(g.gates)-12):]
	gate := recent[g.IntN(len(recent))]
	if gate.decided != "" {
		if g.chance(3) {
			g.say("gate-outcomes", gate.decided, gate.meant)
		}
		return
	}
	m := meantOutcome{callID: gate.CallID, tool: gate.Tool}
	change := []func(*topics.GateOutcome){cause(topics.CauseHuman, "because")}
	switch k := g.IntN(20); {
	case k < 9:
		m.status = topics.GateApproved
	case k < 12:
		m.status, m.args = topics.GateApproved, fmt.Sprintf(`{"amount":%d, "by":"a person"}`, g.op)
	case k == 12:
		m.status, m.args = topics.GateApproved, tooMuch
	case k < 16:
		m.status = topics.GateDenied
	case k == 16:
		m.status = topics.GateTimedOut
	case k == 17:
		m.status = topics.GateCancelled
	case k == 18: // someone makes up an approval
		m.status, m.foreign = topics.GateApproved, true
		change = append(change, func(o *topics.GateOutcome) { o.GateID = topics.GateID("s1", "another", gate.CallID) })
	default:
		m.status, m.wrong = topics.GateApproved, true
		change = append(change, func(o *topics.GateOutcome) { o.EffectiveArgsSHA256 = topics.ArgsSHA256(topics.Raw(`{}`)) })
	}
	if m.args != "" {
		change = append(change, editing(m.args))
	}
	value := gateEnd(gate.gateRequested, m.status, change...)
	if !m.foreign {
		gate.decided, gate.meant = value, m
	}
	g.say("gate-outcomes", value, m)
	if g.chance(8) { // a second outcome, which no gate writes, decides nothing
		m = meantOutcome{callID: gate.CallID, tool: gate.Tool, status: topics.GateDenied}
		g.say("gate-outcomes", gateEnd(gate.gateRequested, m.status), m)
	}
}

// tool is the name of the tool that a model asks for.
func (g generator) tool() string {
	if g.rules.Approval == nil {
		return "look"
	}
	return []string{"look", "pay", "pay", "pay", "delete"}[g.IntN(5)]
}
