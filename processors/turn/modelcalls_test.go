package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// The oracle's rules of tool calls and their results.

// calledItem is an element of tool_uses; null is an element that is JSON null.
type calledItem struct {
	id, name *string
	null     bool
}

// issuedCall is a call as the tool workers know it.
type issuedCall struct{ id, record string }

// meantResult answers a call. callID is the ID of its tool-use record where the result names it.
type meantResult struct {
	id      string
	callID  string
	failure bool
	outcome string
}

// call opens the calls that a response asks for.
func (o *oracle) call(items []calledItem) {
	turn := o.unfinished[0].turn
	o.thinking, o.deadline = false, o.now.Add(o.rules.ToolTimeout)
	o.calls = nil
	for i, item := range items {
		c := expectedCall{id: item.id, name: item.name}
		if blank(item.id) || blank(item.name) || o.openCall(*item.id) >= 0 {
			c.outcome = "error:invalid_tool_call"
			o.expect(turn, o.step, "tool-use-dlq", i, fmt.Sprintf("refuses %s %s of %d", quotedText(c.id), quotedText(c.name), len(items)))
		}
		o.calls = append(o.calls, c)
		switch {
		case c.outcome != "":
		case o.gated(c.name):
			o.ask(i)
		default:
			o.expect(turn, o.step, "tool-use", i, callsFor(c.id, c.name, modelArgs, len(items))+o.unfinished[0].from())
		}
	}
	o.claimOutcomes()
	// Of two results that came early for one call the first on its topic counts.
	held := slices.Clone(o.held)
	slices.SortStableFunc(held, func(a, b heldRecord) int {
		return cmp.Or(cmp.Compare(a.record.topic, b.record.topic), cmp.Compare(a.record.offset, b.record.offset))
	})
	for _, h := range held {
		if h.call == "" {
			continue
		}
		i := o.openCall(h.call)
		if i < 0 || o.calls[i].waits || h.named && h.callID != o.callID(i) || !h.named && h.turn != turn {
			continue
		}
		o.held = slices.DeleteFunc(o.held, func(other heldRecord) bool { return other.record == h.record })
		if m := h.record.meant.(meantResult); !m.failure || o.failureClaimed(i) {
			o.settle(i, h.record, m)
		}
	}
	o.completeStep()
}

// callID is the ID of the tool-use record of a call of the open step.
func (o *oracle) callID(i int) string {
	return fmt.Sprintf("%s/%d/tool-use/%d", o.unfinished[0].turn, o.step, i)
}

// openCall is the index of the open call with an ID, -1 where there is none.
func (o *oracle) openCall(id string) int {
	return slices.IndexFunc(o.calls, func(c expectedCall) bool {
		return c.outcome == "" && c.id != nil && *c.id == id
	})
}

func (o *oracle) settle(i int, r *modelRecord, m meantResult) {
	o.endCall(i, m.outcome)
	o.known.add("result/"+r.topic+"/"+r.value, o.now.UnixMilli())
}

func (o *oracle) endCall(i int, outcome string) {
	if o.calls[i].edited {
		outcome += " (edited)"
	}
	o.calls[i].outcome = outcome
	o.known.add("ended/"+*o.calls[i].id, o.now.UnixMilli())
}

func (o *oracle) result(r *modelRecord, m meantResult) bool {
	if o.remembers("result/" + r.topic + "/" + r.value) {
		return false
	}
	i := o.openCall(m.id)
	if m.callID != "" {
		return o.namedResult(r, m, i)
	}
	switch {
	case i >= 0 && !o.calls[i].waits:
		o.settle(i, r, m)
		o.completeStep()
		return true
	case !o.thinking && i < 0, o.remembers("ended/"+m.id) && !(o.Small && o.rowHolds(r)), o.noRoom(),
		m.failure && o.Small && !o.rowHolds(r):
		return false
	}
	turn := o.unfinished[0].turn
	if slices.ContainsFunc(o.held, func(h heldRecord) bool {
		return h.call == m.id && (!h.named || h.turn == turn && h.step == o.step)
	}) {
		return false
	}
	o.held = append(o.held, heldRecord{record: r, turn: turn, call: m.id})
	return true
}

// namedResult is a result whose ID says which call it answers: that one and no other.
func (o *oracle) namedResult(r *modelRecord, m meantResult, i int) bool {
	turn, step := turnOf(m.callID)
	open := len(o.unfinished) > 0 && o.unfinished[0].turn == turn
	switch {
	case open && step == o.step && i >= 0 && o.callID(i) == m.callID && o.calls[i].waits: // it is held until the approval
		return o.holdResult(r, m, turn, step)
	case o.known.has("finished/"+turn, 0), open && step < o.step, open && step == o.step && !o.thinking && (i < 0 || o.callID(i) != m.callID):
		return false
	case open && step == o.step && !o.thinking:
		o.settle(i, r, m)
		o.completeStep()
		return true
	case o.noRoom(), m.failure && o.Small && !o.rowHolds(r):
		return false
	}
	return o.holdResult(r, m, turn, step)
}

func (o *oracle) holdResult(r *modelRecord, m meantResult, turn string, step int) bool {
	if slices.ContainsFunc(o.held, func(h heldRecord) bool { return h.callID == m.callID }) {
		return false
	}
	o.held = append(o.held, heldRecord{record: r, turn: turn, step: step, named: true, call: m.id, callID: m.callID})
	return true
}

// completeStep asks the model again once every call has its result.
func (o *oracle) completeStep() {
	if slices.ContainsFunc(o.calls, func(c expectedCall) bool { return c.outcome == "" }) {
		return
	}
	calls := o.completed()
	o.think(callsText(calls))
}

// completed says what a step's calls ended in. A small row may replace results.
func (o *oracle) completed() []expectedCall {
	turn := o.unfinished[0].turn
	calls := slices.Clone(o.calls)
	text := func() string { return fmt.Sprintf("completes %d: %s", len(calls), callsText(calls)) }
	if got := o.got[fmt.Sprintf("%s/%d/all-complete/0", turn, o.step)]; o.Small && got != text() {
		parts := strings.Split(got, "[")
		for i := range calls {
			if len(parts) == len(calls)+1 && strings.HasSuffix(parts[i+1], " error:too_large]") {
				calls[i].outcome = "error:too_large"
			}
		}
	}
	o.expect(turn, o.step, "all-complete", 0, text())
	o.expect(turn, o.step, "message", 0, "tells "+callsText(calls))
	return calls
}

func (o *oracle) endAll(outcome string) {
	for i, c := range o.calls {
		if c.outcome == "" {
			cause := topics.CauseParentEnded
			if o.purging {
				cause = topics.CausePurged
			}
			o.withdrawGate(i, cause)
			o.endCall(i, outcome)
		}
	}
}

func (o *oracle) timeOutCalls() {
	for i, c := range o.calls {
		until := c.until
		if until.IsZero() {
			until = o.deadline
		}
		switch {
		case c.outcome != "" || until.After(o.now):
		case c.waits:
			o.withdrawGate(i, topics.CauseParentEnded)
			o.refuse(i, "approval_timed_out")
		default:
			o.endCall(i, "error:timeout")
		}
	}
	o.completeStep()
}

// endOpenCalls ends the calls of a turn that ends before them. The readers are told, the model is not asked.
func (o *oracle) endOpenCalls(outcome string) {
	if len(o.calls) == 0 {
		return
	}
	o.endAll(outcome)
	o.completed()
}
