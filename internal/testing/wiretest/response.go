package wiretest

import (
	"encoding/json"
	"strconv"
	"strings"
)

// item is an element of tool_uses.
type item struct {
	null     bool
	id, name *string
	input    string
	total    int
}

// response is a think-response being written.
type response struct {
	session, user    string // JSON values
	total, previous  string // costs, JSON numbers or null
	input, output    int
	history          []json.RawMessage
	echo             string // a message or null
	messageTexts     []string
	items            []item
	end              bool
	compaction       bool
	time             string // a JSON string
	camel            bool
	nullMessageAhead bool
}

// plannedResponse returns the response of the plan at this step. A variant has other texts and other tool IDs.
func plannedResponse(e Enriched, variant string) *response {
	p := e.Plan
	r := &response{
		session: quote(e.Session), user: "null", previous: "null", input: 100 + e.Step, output: 10 + len(variant),
		history: e.History, echo: string(e.Latest), time: quote(e.Time), camel: p.Has(QuirkCamel),
		nullMessageAhead: p.Has(QuirkNullMessage),
	}
	if e.User != nil {
		r.user = quote(*e.User)
	}
	cost := 0.0
	if e.Cost != nil {
		cost = *e.Cost
		r.previous = decimal(cost)
	}
	r.total = decimal(cost + 0.001)
	switch {
	case p.Has(QuirkNoEcho):
		r.echo = "null"
	case p.Has(QuirkShortEcho):
		r.echo = shortened(e)
	}
	switch {
	case p.Has(QuirkNoEnd):
	case e.Step < p.Steps:
		r.addToolCalls(e, variant)
	default:
		r.addAnswer(e, variant)
	}
	return r
}

func (r *response) addToolCalls(e Enriched, variant string) {
	p := e.Plan
	for i := range p.Tools {
		id, name := p.toolID(e.Step, i)+variant, "tool_"+number(i%3)
		r.items = append(r.items, item{id: &id, name: &name, input: callInput(p, e.Step, i)})
	}
	r.addInvalidItems(p, e.Step)
	for i := range r.items {
		r.items[i].total = len(r.items)
	}
	blocks := []string{`{"type":"text","text":` + quote(p.at(e.Step)) + `}`}
	for _, it := range r.items {
		if !it.null {
			blocks = append(blocks, `{"type":"tool_use","id":`+nullable(it.id)+`,"name":`+nullable(it.name)+
				`,"input":`+it.input+`}`)
		}
	}
	r.messageTexts = []string{r.message("["+strings.Join(blocks, ",")+"]", "null")}
	r.end = p.Has(QuirkEndTools)
}

// addInvalidItems adds the items that are not valid calls.
func (r *response) addInvalidItems(p Plan, step int) {
	name, empty, spaces := "tool_odd", "", "  "
	if p.Has(QuirkBlankID) {
		lost := p.toolID(step, 900)
		odd := []item{{name: &name}, {id: &spaces, name: &name}, {id: &lost, name: &empty}, {id: &lost}}
		it := odd[pickNumber(len(odd), p.Key, number(step))]
		it.input = "{}"
		r.items = append(r.items, it)
	}
	if p.Has(QuirkRepeatID) && p.Tools > 0 {
		r.items = append(r.items, item{id: r.items[0].id, name: &name, input: "null"})
	}
	if p.Has(QuirkNullItems) {
		r.items = append([]item{{null: true}}, r.items...)
	}
}

// callInput returns the input of a call, from which the tool worker reads its deed.
func callInput(p Plan, step, call int) string {
	return `{"deed":` + quote(string(p.Deed(step, call))) + `,"key":` + quote(p.Key) + `,"step":` + number(step) +
		`,"call":` + number(call) + `,"z":1.10,"a":"<&>\u00e9"}`
}

func (r *response) addAnswer(e Enriched, variant string) {
	p := e.Plan
	r.end = true
	text := answerText(p) + variant
	metadata := "null"
	if p.Has(QuirkAgent) {
		metadata = `{"agent":"planner"}`
	}
	switch {
	case p.Has(QuirkSilentText):
	case p.Has(QuirkBlocks):
		r.messageTexts = []string{r.message(`[{"type":"text","text":`+quote(text)+`}]`, metadata)}
	case pickNumber(3, p.Key) == 0:
		// Two texts of the assistant, a blank one, and one of another role, which is not part of the answer.
		r.messageTexts = []string{
			r.message(quote(text), metadata), r.message(`"  "`, "null"),
			strings.Replace(r.message(`"aside"`, "null"), `"role":"assistant"`, `"role":"user"`, 1),
			r.message(quote("and <more> & \U0001F980"), "null"),
		}
	default:
		r.messageTexts = []string{r.message(quote(text), metadata)}
	}
}

// answerText returns the model's answer at the end of a plan.
func answerText(p Plan) string {
	return "answer to " + p.Key + strings.Repeat("\n0123456789", p.Pad/11)
}

func (r *response) message(content, metadata string) string {
	if r.camel {
		return `{"sessionId":` + r.session + `,"userId":` + r.user + `,"role":"assistant","content":` + content +
			`,"timestamp":` + r.time + `}`
	}
	return `{"session_id":` + r.session + `,"user_id":` + r.user + `,"role":"assistant","content":` + content +
		`,"timestamp":` + r.time + `,"metadata":` + metadata + `}`
}

// dropHistory drops the history and the echo, which make the response too large.
func (r *response) dropHistory() {
	r.history, r.compaction, r.echo = nil, true, "null"
}

func shortened(e Enriched) string {
	o, err := objectIn(e.Latest)
	if err != nil {
		return "null"
	}
	content := `"[shortened]"`
	if s := o.text("content"); s != nil {
		content = quote(*s + " [shortened]")
	}
	return `{"session_id":` + quote(e.Session) + `,"user_id":null,"role":` + quote(e.Role) + `,"content":` + content +
		`,"timestamp":null,"metadata":null}`
}

func nullable(s *string) string {
	if s == nil {
		return "null"
	}
	return quote(*s)
}

// decimal writes a number as Java writes a double: with a point or an exponent.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'g', 12, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
