package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// What the generator's workers say: models answer steps, tools answer calls.

// padding makes records of different sizes; those of small rows are large, and so are those of some other cases, whose
// prompts are in parts.
func (g generator) padding(size int) string {
	switch {
	case g.Small:
		size += []int{20000, 20000, 3000, 12000}[g.Seed%4]
	case g.Seed%5 == 0:
		size += promptInline / 2
	}
	return strings.Repeat("x", g.IntN(3)*size)
}

// respond answers the open step.
func (g generator) respond() {
	if !g.thinking {
		return
	}
	for _, a := range slices.Backward(g.model.asked) {
		if a.turn == g.unfinished[0].turn && a.step == g.step {
			g.answer(a)
			return
		}
	}
	g.failf("the open step was never asked")
}

// stale answers a step that is closed, or, after a crash, one that is still to come.
func (g generator) stale() {
	if len(g.model.asked) == 0 {
		return
	}
	recent := g.model.asked[max(0, len(g.model.asked)-40):]
	g.answer(recent[g.IntN(len(recent))])
}

// answer writes a response to a step, or the failure to make one.
func (g generator) answer(a *askedStep) {
	open := g.thinking && a.turn == g.unfinished[0].turn && a.step == g.step
	// Without an ID a response to a step that is still to come may be taken for one to the open step.
	named := g.Crashes == anyOrder || !g.chance(3)
	if g.chance(10) {
		g.giveUpOn(a, named, open)
		return
	}
	m, echo := meantResponse{askedStep: a, named: named, echoes: true, cost: "none"}, ""
	previous, input := topics.Splice(a.history), a.input
	cost := "null"
	if !g.chance(20) {
		c := float64(g.op) / 8
		cost, m.cost = fmt.Sprint(c), costText(&c)
	}
	said, more := g.body(&m)
	switch {
	case open && g.chance(10):
		previous = topics.Raw(`[{"role":"user","content":"the story so far"},null]`)
		more += `,"compaction":true`
		m.compacts = true
	case open && g.chance(12):
		input, m.echoes = nil, false
	case g.chance(10):
		previous, m.omits, m.compacts, m.said = nil, true, true, string(said)
		if named && open && a.step == 1 && !g.Small && m.cost != "none" && g.chance(2) { // a small row may have no room for the prompt
			input, m.omitsInput, m.echoes = nil, true, false
		}
	case g.chance(12) && m.answers && a.step == 1: // a crash can change the results that a later step begins with
		said = topics.Splice(input, said)
		previous, input, m.compacts = nil, nil, true // a legacy record has the prompt in messages, and no history
		echo = `"messages":` + string(said)
	}
	if echo == "" {
		echo = fmt.Sprintf(`"previous_messages":%s,"last_input_message":%s,"last_input_response":%s`, orNull(previous), orNull(input), said)
	}
	m.conversation = string(topics.Splice(previous, input, said))
	var opts []recordOption
	if named {
		opts = append(opts, header(topics.HeaderID, a.id+"/think"))
	}
	g.say("think-request-response", fmt.Sprintf(`{"session_id":"s1","total_session_cost":%s,"n":%q,%s,%s}`, cost, g.name(), more, echo), m, opts...)
}

func orNull(raw topics.Raw) string {
	if raw == nil {
		return "null"
	}
	return string(raw)
}

// body is what a model says.
func (g generator) body(m *meantResponse) (said topics.Raw, more string) {
	switch k := g.IntN(20); {
	case k < 10:
		m.items = g.tools()
		var items, blocks []string
		for _, item := range m.items {
			if item.null {
				items = append(items, "null")
				continue
			}
			items = append(items, fmt.Sprintf(`{"tool_use_id":%s,"name":%s,"input":%s}`, quotedText(item.id), quotedText(item.name), modelArgs))
			if g.rules.Approval != nil && item.id != nil && item.name != nil {
				blocks = append(blocks, toolBlock(*item.id, *item.name, modelArgs))
			}
		}
		return topics.Raw(`[{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]},null]`),
			fmt.Sprintf(`"tool_uses":[%s],"end_turn":%v`, strings.Join(items, ","), g.chance(2))
	case k < 19:
		padding := g.padding(150)
		if g.Small && g.chance(5) {
			padding = g.filling(m.askedStep)
		}
		m.answers, m.text = true, fmt.Sprintf("a%s %s", g.name(), padding)
		return topics.Raw(fmt.Sprintf(`[{"role":"assistant","content":%q}]`, m.text)), `"tool_uses":null,"end_turn":true`
	default:
		return topics.Raw(`[]`), `"end_turn":false`
	}
}

// filling is so much that the row has little room left behind an answer to a step.
func (g generator) filling(a *askedStep) string {
	s := g.state()
	if s == nil {
		return ""
	}
	rest := g.rules.RowLimit - stateSize(s) + len(g.history) - len(a.history) - len(a.input) - g.IntN(500)
	return strings.Repeat("x", max(0, rest))
}

// tools are the calls that a model asks for: some cannot be made, and some have IDs that were used before.
func (g generator) tools() (items []calledItem) {
	n := 1 + g.IntN(4)
	if g.chance(60) {
		n = 70
		if g.Small {
			n = 40
		}
	}
	for i := range n {
		item := calledItem{id: ptr(fmt.Sprintf("c%d-%d", g.op, i)), name: ptr(g.tool())}
		switch g.IntN(20) {
		case 0:
			item = calledItem{null: true}
		case 1:
			item.id = nil
		case 2:
			item.id = ptr("")
		case 3:
			item.name = nil
		case 4, 5:
			if i > 0 {
				item.id = items[0].id
			}
		case 6, 7, 8:
			item.id = ptr(fmt.Sprint("call_", g.IntN(3)))
		case 9, 10:
			item.id = ptr(fmt.Sprint("p", g.IntN(30)))
		}
		items = append(items, item)
	}
	return items
}

func (g generator) giveUpOn(a *askedStep, named, open bool) {
	if g.chance(2) { // before or after the failure
		g.say("think-request-response", fmt.Sprintf(`{"sessionId":"s1","cost":null,"prevSessionCost":null,"messages":[{"role":"assistant","content":"Sorry"}],"n":%q,"endTurn":true}`,
			g.name()), meantReport{})
	}
	m := meantFailure{a, named, named || !open || !g.chance(4)}
	value := fmt.Sprintf(`{"n":%q,"latest_input":%s}`, g.name(), a.input)
	if !m.echoes {
		value = fmt.Sprintf(`{"originalValue":null,"error":%q}`, g.name())
	}
	opts := []recordOption{header(topics.HeaderErrorReason, "overloaded")}
	if named {
		opts = append(opts, header(topics.HeaderID, a.id+"/failure"))
	}
	g.say("think-dlq", value, m, opts...)
}

// answerCall writes the result of a call: of an open one, of an earlier one, or of one that is still to come.
func (g generator) answerCall() {
	var open []issuedCall
	for i, c := range g.calls {
		if c.outcome == "" {
			open = append(open, issuedCall{*c.id, g.callID(i)})
		}
	}
	if len(open) > 0 && g.chance(4) {
		g.repeatResult(open[g.IntN(len(open))].id)
		return
	}
	recent := g.ids[max(0, len(g.ids)-8):]
	switch k := g.IntN(10); {
	case k < 5 && len(open) > 0:
		g.tell(open[g.IntN(len(open))])
	case k < 8 && len(recent) > 0:
		g.tell(recent[g.IntN(len(recent))])
	case k == 8:
		g.tell(issuedCall{id: fmt.Sprint("call_", g.IntN(3))})
	default:
		g.tell(issuedCall{id: fmt.Sprint("p", g.IntN(30))})
	}
}

// repeatResult writes what a tool said for an ID once more: by now another call may have the ID.
func (g generator) repeatResult(id string) {
	for _, topic := range []string{"tool-use-dlq", "tool-use-result"} {
		for _, r := range slices.Backward(g.logs[topic]) {
			m, ok := r.meant.(meantResult)
			if ok && m.id == id && g.remembers("result/"+topic+"/"+r.value) {
				g.again(r)
				g.drain(topic)
				return
			}
		}
	}
}

// answerAll writes the results of all open calls, in any order.
func (g generator) answerAll() {
	calls := slices.Clone(g.calls)
	for _, i := range g.Perm(len(calls)) {
		if calls[i].outcome == "" {
			g.tell(issuedCall{*calls[i].id, g.callID(i)})
		}
		if len(g.calls) != len(calls) {
			return // the turn is over
		}
	}
}

// tell writes the result of a call, or the failure of its tool. Half of them name the record that made the call.
func (g generator) tell(c issuedCall) {
	name := g.name()
	m := meantResult{id: c.id, outcome: "r" + name}
	topic, kind, value := "tool-use-result", "/result", toolResult(c.id, m.outcome+" "+g.padding(800))
	var opts []recordOption
	if g.chance(5) {
		m.failure, m.outcome = true, "error:tool_failed"
		topic, kind, value = "tool-use-dlq", "/failure", fmt.Sprintf(`{"tool_use_id":%q,"n":%q,"name":null}`, c.id, name)
		opts = append(opts, header(topics.HeaderErrorReason, "broken"))
	}
	if g.rules.Approval != nil {
		value = strings.Replace(value, `"name":"look"`, `"name":null`, 1)
	}
	if c.record != "" && g.chance(2) {
		m.callID = c.record
		opts = append(opts, header(topics.HeaderID, c.record+kind))
	}
	g.say(topic, value, m, opts...)
}
