package invoke

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// bodyVersion is that of the envelope of requests and answers.
const bodyVersion = "2025.07.14"

// The headers of an answer that a browser's script may read.
var exposed = strings.Join([]string{
	headerVersion, HeaderTrace, HeaderSpan, headerParent, HeaderSession, HeaderTurn, headerBaggage, HeaderFormat,
	headerFormatVersion, headerVercelStream,
}, ", ")

const (
	// HeaderTurn names the turn that an answer belongs to, where the agent names its turns.
	HeaderTurn = "X-Ag-Turn-Id"

	headerVersion       = "X-Ag-Version"
	headerBaggage       = "Baggage"
	headerFormatVersion = "X-Ag-Messages-Version"
	headerVercelStream  = "X-Vercel-Ai-Ui-Message-Stream"
)

// envelope is the body of a success or an error, up to what differs.
func (c *call) envelope() object {
	return newObject().text("version", bodyVersion).some("trace_id", c.trace.TraceID).some("span_id", c.trace.SpanID).
		some("session_id", c.session)
}

// head sets the headers of every answer but a 406 for its media type.
func (c *call) head() {
	h := c.w.Header()
	h.Set(headerVersion, c.door.rules.version)
	if c.trace.TraceID != "" {
		h.Set(HeaderTrace, c.trace.TraceID)
		h.Set(HeaderSpan, c.trace.SpanID)
		h.Set(headerParent, "00-"+c.trace.TraceID+"-"+c.trace.SpanID+"-01")
	}
	if c.session != "" {
		h.Set(HeaderSession, c.session)
		entry := baggageSession + "=" + c.session
		if before := h.Get(headerBaggage); before != "" {
			entry = before + "," + entry
		}
		h.Set(headerBaggage, entry)
	}
}

// vercelHead sets the headers of messages in the Vercel form.
func (c *call) vercelHead() {
	c.w.Header().Set(HeaderFormat, "vercel")
	c.w.Header().Set(headerFormatVersion, "v1")
}

// turnHead names the turn, as far as the agent has and a header can.
func (c *call) turnHead(t *turn) {
	if t.named && t.at.printable() {
		c.w.Header().Set(HeaderTurn, t.at.Turn)
	}
}

// fail answers with a failure before anything was streamed.
func (c *call) fail(e Error) {
	c.head()
	if c.vercel && len(c.accept.Wanted) > 0 && c.accept.Wanted[0] == SSE {
		c.vercelHead()
	}
	status := newObject().with("code", topics.Raw(strconv.Itoa(e.Status))).text("message", e.Text).
		text("type", e.Type)
	c.json(e.Status, c.envelope().with("status", status.value()))
}

// succeed answers with a batch.
func (c *call) succeed(outputs topics.Raw) {
	c.head()
	if c.vercel {
		c.vercelHead()
	}
	status := newObject().with("code", topics.Raw("200")).text("message", "Success")
	data := newObject().with("outputs", outputs)
	c.json(http.StatusOK, c.envelope().with("status", status.value()).with("data", data.value()))
}

// notAcceptable answers that the agent has none of the types that the client takes.
func (c *call) notAcceptable(supported []MediaType) {
	list := object{'['}
	for i, m := range supported {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, quote(string(m))...)
	}
	requested := c.accept.requested()
	c.json(http.StatusNotAcceptable, newObject().
		text("detail", "The agent does not answer with "+string(requested)+" to this request.").
		text("requested", string(requested)).with("supported", topics.Raw(append(list, ']'))).
		some("trace_id", c.trace.TraceID).some("span_id", c.trace.SpanID))
}

// detail answers a request that does not get as far as the agent's surface.
func (c *call) detail(status int, text string) {
	c.json(status, newObject().text("detail", text))
}

// invalid answers a body of the wrong form.
func (c *call) invalid(status int, text string) {
	place, what, _ := strings.Cut(text, ": ")
	loc := object(`["body"`)
	for part := range strings.SplitSeq(place, ".") {
		if part != "body" {
			loc = append(append(loc, ','), quote(part)...)
		}
	}
	item := newObject().with("loc", topics.Raw(append(loc, ']'))).text("msg", what).text("type", "value_error")
	c.json(status, newObject().with("detail", topics.Raw("["+string(item.value())+"]")))
}

func (c *call) json(status int, body object) {
	raw := respace(nil, body.value(), false)
	c.w.Header().Set("Content-Type", string(JSON))
	c.w.WriteHeader(status)
	for chunk := range slices.Chunk(raw, fullBuffer) {
		c.deadline()
		if _, err := c.w.Write(chunk); err != nil {
			return // the client has gone, and nobody else can be told
		}
	}
}
