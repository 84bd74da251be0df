package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// The oracle's rules of turns: messages, think steps, answers, deadlines and control records.

// meantMessage is a message of a user. fault says that it can only be answered by an error, tool that it pretends to be
// a tool message.
type meantMessage struct {
	request string
	fault   bool
	tool    bool
	stamp   int64
	meantChannel
}

// meantResponse answers a step. Named says that its ID says so; echoes that it repeats the input of the step.
type meantResponse struct {
	*askedStep
	named, echoes bool
	compacts      bool         // its history is shorter than the one that was asked with
	items         []calledItem // not nil: it asks for tools
	answers       bool
	text          string // of the answer
	cost          string
	conversation  string
	// omits says that previous_messages is left out, and omitsInput that last_input_message is too: what the model said
	// is appended to what the step was asked with.
	omits, omitsInput bool
	said              string
}

// meantReport is what FlightDeck's SDKs write to think-request-response when the model fails.
type meantReport struct{}

type meantFailure struct {
	*askedStep
	named, echoes bool
}

type meantTombstone struct{}

// meantIgnored is a record that the turn wrote itself.
type meantIgnored struct{}

type meantControl struct {
	purge   bool
	request string
}

// askedStep is a step as the workers were asked.
type askedStep struct {
	turn    string
	step    int
	id      string
	history topics.Raw
	input   topics.Raw
}

func (o *oracle) message(r *modelRecord, m meantMessage) bool {
	if m.tool {
		return false
	}
	e := r.event.(messageArrived)
	a := acceptedMessage{turn: turnID(o.key, e.Cause), request: m.request, stamp: m.stamp, meantChannel: m.meantChannel}
	if m.request != "" && o.remembers("request/"+m.request) {
		return false
	}
	if text, ok := o.got[a.turn+"/0/output/0"]; ok && o.refusedFor(reasonRowSize) {
		// The row has no room for what would remember the message: it is answered, and another repeat would be new.
		code, _, _ := strings.Cut(text, " ")
		o.expect(a.turn, 0, "output", 0, answering(code, o.cost, a.request, a.own))
		o.refused[a.turn], o.raced[a.turn] = true, true
		return false
	}
	delete(o.refused, a.turn)
	if m.request != "" {
		o.known.add("request/"+m.request, o.now.UnixMilli())
	}
	o.known.add("accepted/"+a.turn, 1)
	message := e.Message
	if message.Role == nil {
		message.Role = ptr("user")
	}
	if m.noRoute {
		message.Metadata = topics.Raw(m.metadata)
	}
	a.input = string(topics.EncodeMessage(message))
	if a.request == "" && !a.noRoute {
		a.route = o.takeRoute(a)
	}
	code, told := o.tooLarge(a.turn)
	switch {
	case m.fault:
		o.output(a, "error:invalid_message")
	case len(o.unfinished) == 0:
		o.unfinished = append(o.unfinished, a)
		o.begin()
	case o.rules.Policy == Reject && !a.result:
		o.output(a, "error:busy")
	case o.waitingMessages() >= o.rules.QueueLimit && !a.result:
		o.output(a, "error:queue_full")
	case told:
		o.output(a, code)
	default:
		o.unfinished = append(o.unfinished, a)
		if !a.result {
			o.supersede()
		}
	}
	return true
}

// begin opens the turn of the first message.
func (o *oracle) begin() {
	o.step, o.said = 0, nil
	if o.overBudget() {
		code, told := o.tooLarge(o.unfinished[0].turn)
		if !told { // else it made room for the answer that exceeds the budget
			code = "error:over_budget"
		}
		o.end(code)
		return
	}
	if !o.Small { // a small row may have hidden more, so that nothing is over the limit
		o.history = o.limited(o.history)
	}
	o.think(o.unfinished[0].input)
}

// overBudget reports whether the session has cost what it may.
func (o *oracle) overBudget() bool {
	cost, err := strconv.ParseFloat(o.cost, 64)
	return err == nil && o.rules.MaxCost > 0 && cost >= o.rules.MaxCost
}

// think asks the model. What came early counts at once.
func (o *oracle) think(input string) {
	a := o.unfinished[0]
	o.calls = nil
	enriched := fmt.Sprintf("%s/%d/enriched/0", a.turn, o.step+1)
	if code, ok := o.tooLarge(a.turn); ok && o.got[enriched] == "" {
		o.thinking = true
		o.end(code)
		return
	}
	o.step++
	o.thinking, o.input, o.deadline = true, input, o.now.Add(o.rules.ThinkTimeout)
	o.before = o.history
	if o.said != nil {
		o.before = *o.said
	}
	o.concedeHistory(enriched, input)
	if o.step == 1 {
		o.judgeLimit()
	}
	o.expect(a.turn, o.step, "enriched", 0, asking(input, o.before, o.cost+promptText(a.prompt)))
	o.seeOutcomes()
	for step := o.step; o.thinking && o.unfinished[0].turn == a.turn && o.step == step; {
		i := slices.IndexFunc(o.held, func(h heldRecord) bool { return h.call == "" && h.gate == "" && h.turn == a.turn && h.step == step })
		if i < 0 {
			return
		}
		r := o.held[i].record
		o.held = slices.Delete(o.held, i, i+1)
		switch m := r.meant.(type) {
		case meantResponse:
			if !o.remembers("response/" + r.value) {
				o.counts(r, m)
			}
		case meantFailure:
			o.end("error:think_failed")
		}
	}
}

// answersOpenStep decides whether a worker's record is for the open step: by its ID, else by the input that it echoes.
// One that names a step to come is held.
func (o *oracle) answersOpenStep(r *modelRecord, step *askedStep, named, echoes, compacts bool) (yes, held bool) {
	var open acceptedMessage
	if len(o.unfinished) > 0 {
		open = o.unfinished[0]
	}
	same := step != nil && step.turn == open.turn && step.step == o.step
	switch {
	case named && o.known.has("finished/"+step.turn, 0):
		return false, false
	case named && !same && (step.turn != open.turn || step.step > o.step):
		if o.noRoom() {
			return false, false
		}
		if !slices.ContainsFunc(o.held, func(h heldRecord) bool { return h.record.topic == r.topic && h.record.value == r.value }) {
			o.held = append(o.held, heldRecord{record: r, turn: step.turn, step: step.step, named: true})
		}
		return false, true
	case !o.thinking:
		return false, false
	case named:
		return same, false
	default:
		return !echoes || same || string(step.input) == o.input && (compacts || o.sameLength(step)), false
	}
}

// sameLength reports whether a step was asked with as many messages as the open one: the same question with as long a
// history cannot be told apart.
func (o *oracle) sameLength(step *askedStep) bool {
	was, _ := topics.Elements(step.history)
	is, _ := topics.Elements(topics.Raw(o.before))
	return len(was) == len(is)
}

func (o *oracle) respond(r *modelRecord, m meantResponse) bool {
	if o.remembers("response/" + r.value) {
		return false
	}
	counts, held := o.answersOpenStep(r, m.askedStep, m.named, m.echoes, m.compacts)
	if counts {
		o.counts(r, m)
	}
	return counts || held
}

// counts applies a response to the open step.
func (o *oracle) counts(r *modelRecord, m meantResponse) {
	o.known.add("response/"+r.value, o.now.UnixMilli())
	o.cost = m.cost
	if m.omits {
		input, before := o.input, o.history // a tombstone may have cleared the history since the step was asked
		if o.said != nil {
			before = *o.said
		}
		if !m.omitsInput {
			input = string(m.input)
		}
		m.conversation = string(topics.Splice(topics.Raw(before), topics.Raw(input), topics.Raw(m.said)))
	}
	turn := o.unfinished[0].turn
	code, told := o.tooLarge(turn)
	switch {
	case m.items != nil && o.step >= o.rules.MaxSteps:
		o.end("error:too_many_steps")
	case m.items != nil && o.overBudget():
		o.end("error:over_budget")
	case m.items != nil:
		if told && !slices.ContainsFunc(keys(o.got), func(id string) bool {
			return strings.HasPrefix(id, fmt.Sprintf("%s/%d/", turn, o.step)) && !strings.Contains(id, "/enriched/")
		}) {
			o.end(code)
			return
		}
		o.said = &m.conversation
		o.call(m.items)
	case m.answers && told:
		o.end(code)
	case m.answers:
		o.history = m.conversation
		o.end(m.text)
	}
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

func (o *oracle) thinkFails(r *modelRecord, m meantFailure) bool {
	fails, held := o.answersOpenStep(r, m.askedStep, m.named, m.echoes, true)
	if fails {
		o.end("error:think_failed")
	}
	return fails || held
}

// end gives the open turn its output, and the next message its turn.
func (o *oracle) end(text string) {
	o.endOpenCalls(text)
	a := o.unfinished[0]
	o.unfinished = o.unfinished[1:]
	o.thinking, o.calls, o.step, o.said = false, nil, 0, nil
	o.held = slices.DeleteFunc(o.held, func(h heldRecord) bool { return h.turn == a.turn })
	o.output(a, text)
	if len(o.unfinished) > 0 {
		o.begin()
	}
}

func (o *oracle) output(a acceptedMessage, text string) {
	o.known.add("finished/"+a.turn, 1)
	o.held = slices.DeleteFunc(o.held, func(h heldRecord) bool { return h.turn == a.turn })
	o.expect(a.turn, 0, "output", 0, answering(text, o.cost, a.request, o.useRoute(a)))
}

// time lets a deadline come.
func (o *oracle) time() {
	if len(o.unfinished) > 0 && !o.due().After(o.now) {
		if o.thinking {
			o.end("error:think_timeout")
		} else {
			o.timeOutCalls()
		}
	}
	o.expireRoutes()
}

func (o *oracle) control(m meantControl) bool {
	switch {
	case m.purge:
		waiting := o.unfinished
		if len(waiting) > 0 {
			o.unfinished = waiting[:1:1]
			o.purging = true
			o.end("error:cancelled")
			o.purging = false
			for _, a := range waiting[1:] {
				o.output(a, "error:cancelled")
			}
		}
		o.history, o.cost, o.held = "[]", "none", nil
		o.named, o.unnamed = map[string]replyRoute{}, nil
	case len(o.unfinished) > 0 && (m.request == "" || o.unfinished[0].request == m.request):
		o.end("error:cancelled")
	case m.request != "":
		i := slices.IndexFunc(o.unfinished, func(a acceptedMessage) bool { return a.request == m.request })
		if i > 0 {
			a := o.unfinished[i]
			o.unfinished = slices.Delete(o.unfinished, i, i+1)
			o.output(a, "error:cancelled")
		}
	}
	return true
}
