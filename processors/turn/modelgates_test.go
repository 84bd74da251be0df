package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// The oracle's rules of calls that wait for approval, and the gate that decides about them.

const (
	// modelTTL is how long a gate is open.
	modelTTL = 15 * time.Minute
	// modelArgs are the arguments of every call.
	modelArgs = `{"n":123456789012345678901234567890.10}`
	// tooMuch are arguments that the policy denies, whatever a person says.
	tooMuch = `{"amount":5000}`
)

func modelPolicy() *approval.Policy {
	return &approval.Policy{
		ReadOnly: []string{"look"}, TTL: modelTTL,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Edit: true},
			{Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/amount": {AtLeast: new(1000.0)}}},
			{Tool: "delete", Effect: approval.Deny},
		},
	}
}

// meantOutcome is the outcome of a call's gate. args are the changed arguments, "" if they were not changed.
type meantOutcome struct {
	callID, tool string
	status       topics.GateStatus
	args         string
	foreign      bool // it has the ID of another gate
	wrong        bool // its digest is not that of the arguments
}

// requestedGate is a gate as the gate's group knows it. The first request for an ID counts, and one outcome.
type requestedGate struct {
	gateRequested
	decided string
	meant   meantOutcome
}

func (o *oracle) gated(tool *string) bool {
	return o.rules.Approval != nil && !blank(tool) && (*tool == "pay" || *tool == "delete")
}

// ask opens a gate for a call.
func (o *oracle) ask(i int) {
	c := &o.calls[i]
	c.waits, c.until = true, o.now.Add(modelTTL+gateGrace)
	o.expect(o.unfinished[0].turn, o.step, "gate-request", i, asksFor(*c.id, *c.name)+fromText(topics.Raw(o.unfinished[0].origin), 0))
}

func asksFor(id, tool string) string { return fmt.Sprintf("asks for %q %q", id, tool) }

// withdrawGate ends the gate of a call that waits.
func (o *oracle) withdrawGate(i int, cause topics.GateCause) {
	if o.calls[i].waits {
		o.calls[i].waits = false
		o.expect(o.unfinished[0].turn, o.step, "gate-withdrawal", i, "withdraws: "+string(cause))
	}
}

// refuse ends a call that will not run. What is held for it is given up.
func (o *oracle) refuse(i int, reason string) {
	o.calls[i].waits = false
	id, callID, turn := *o.calls[i].id, o.callID(i), o.unfinished[0].turn
	o.endCall(i, "error:"+reason)
	o.held = slices.DeleteFunc(o.held, func(h heldRecord) bool {
		return h.call == id && (h.named && h.callID == callID || !h.named && h.turn == turn)
	})
}

// outcome applies the outcome of a gate.
func (o *oracle) outcome(r *modelRecord, m meantOutcome) bool {
	turn, step := turnOf(m.callID)
	open := len(o.unfinished) > 0 && o.unfinished[0].turn == turn
	switch {
	case m.foreign, o.known.has("finished/"+turn, 0), open && step < o.step:
		return false
	case !open || step > o.step:
		same := func(h heldRecord) bool { return h.record.topic == r.topic && h.record.value == r.value && !h.seen }
		if slices.ContainsFunc(o.held, same) {
			return false
		}
		o.held = append(o.held, heldRecord{record: r, turn: turn, step: step, named: true, gate: m.callID})
		return true
	case o.thinking:
		return o.holdOutcome(heldRecord{record: r, turn: turn, step: step, named: true, gate: m.callID})
	}
	i := o.waiting(m.callID)
	if i < 0 {
		return false
	}
	o.decide(i, m)
	o.claim(i)
	o.completeStep()
	return true
}

// holdOutcome holds an outcome for the open step, unless one of the same call is held.
func (o *oracle) holdOutcome(h heldRecord) bool {
	if slices.ContainsFunc(o.held, func(other heldRecord) bool { return other.gate == h.gate && other.seen }) {
		return false
	}
	h.seen = true
	o.held = append(o.held, h)
	return true
}

// seeOutcomes moves the outcomes that came before their step opened to those that are held for it.
func (o *oracle) seeOutcomes() {
	turn := o.unfinished[0].turn
	for _, h := range slices.Clone(o.held) {
		if h.gate != "" && !h.seen && h.turn == turn && h.step == o.step {
			o.held = slices.DeleteFunc(o.held, func(other heldRecord) bool { return other.record == h.record })
			o.holdOutcome(h)
		}
	}
}

// waiting is the index of the open step's call with an ID if it waits for its gate, else -1.
func (o *oracle) waiting(callID string) int {
	return slices.IndexFunc(indexes(o.calls), func(i int) bool { return o.calls[i].waits && o.callID(i) == callID })
}

func indexes(calls []expectedCall) []int {
	list := make([]int, len(calls))
	for i := range list {
		list[i] = i
	}
	return list
}

// decide applies an outcome to a call that waits.
func (o *oracle) decide(i int, m meantOutcome) {
	c := &o.calls[i]
	switch {
	case m.status == topics.GateTimedOut:
		o.refuse(i, "approval_timed_out")
	case m.status == topics.GateCancelled:
		o.refuse(i, "cancelled")
	case m.status == topics.GateDenied, m.wrong, m.tool != *c.name, m.args == tooMuch, *c.name == "delete":
		o.refuse(i, "denied")
	default:
		c.waits, c.until = false, o.now.Add(o.rules.ToolTimeout)
		args := modelArgs
		if m.args != "" && m.args != modelArgs {
			args, c.edited = m.args, true
			o.said = ptr(replaced(*o.said, *c.id, *c.name, args))
		}
		o.expect(o.unfinished[0].turn, o.step, "tool-use", i, callsFor(c.id, c.name, args, len(o.calls))+o.unfinished[0].from())
	}
}

// replaced is a conversation whose last message has other arguments for a call.
func replaced(conversation, id, tool, args string) string {
	at := strings.LastIndex(conversation, `{"role":"assistant","content":[`)
	block := toolBlock(id, tool, modelArgs)
	if at < 0 || !strings.Contains(conversation[at:], block) {
		panic("the conversation has no block of the call")
	}
	return conversation[:at] + strings.Replace(conversation[at:], block, toolBlock(id, tool, args), 1)
}

func toolBlock(id, tool, args string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, args)
}

// callsFor is how a call is compared.
func callsFor(id, tool *string, args string, total int) string {
	text := fmt.Sprintf("calls %s %s of %d", quotedText(id), quotedText(tool), total)
	if args != modelArgs {
		text += " with " + args
	}
	return text
}

// claimOutcomes applies the outcomes that are held for the calls of a new step.
func (o *oracle) claimOutcomes() {
	turn := o.unfinished[0].turn
	held := slices.Clone(o.held)
	o.held = slices.DeleteFunc(o.held, func(h heldRecord) bool { return h.seen && h.turn == turn && h.step == o.step })
	for _, h := range held {
		if !h.seen || h.turn != turn || h.step != o.step {
			continue
		}
		if i := o.waiting(h.gate); i >= 0 {
			o.decide(i, h.record.meant.(meantOutcome))
		}
	}
}

// claim ends a call that was handed out with the result that is held for it.
func (o *oracle) claim(i int) {
	if o.calls[i].outcome != "" || o.calls[i].waits {
		return
	}
	turn := o.unfinished[0].turn
	held := slices.Clone(o.held)
	slices.SortStableFunc(held, func(a, b heldRecord) int {
		return cmp.Or(cmp.Compare(a.record.topic, b.record.topic), cmp.Compare(a.record.offset, b.record.offset))
	})
	for _, h := range held {
		if h.call == "" || o.openCall(h.call) != i || h.named && h.callID != o.callID(i) || !h.named && h.turn != turn {
			continue
		}
		o.held = slices.DeleteFunc(o.held, func(other heldRecord) bool { return other.record == h.record })
		o.settle(i, h.record, h.record.meant.(meantResult))
	}
}

// supersede ends the calls that wait, because a message arrived.
func (o *oracle) supersede() {
	if !o.rules.SupersedeGates {
		return
	}
	ended := false
	for i := range o.calls {
		if o.calls[i].waits {
			o.withdrawGate(i, topics.CauseSuperseded)
			o.refuse(i, "cancelled")
			ended = true
		}
	}
	if ended {
		o.completeStep()
	}
}

// due is when the open turn must go on.
func (o *oracle) due() time.Time {
	if o.thinking || len(o.calls) == 0 {
		return o.deadline
	}
	earliest := time.Time{}
	for _, c := range o.calls {
		until := c.until
		if until.IsZero() {
			until = o.deadline
		}
		if c.outcome == "" && (earliest.IsZero() || until.Before(earliest)) {
			earliest = until
		}
	}
	return earliest
}
