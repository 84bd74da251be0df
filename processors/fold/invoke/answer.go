package invoke

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// bodyVersion is the version of the envelope of requests and responses.
const bodyVersion = "2025.07.14"

// The response headers that a script in a browser may read.
var exposedHeaders = strings.Join([]string{
	headerVersion, HeaderTrace, HeaderSpan, headerParent, HeaderSession, HeaderTurn, HeaderWaits, headerBaggage, HeaderFormat,
	headerFormatVersion, headerVercelStream,
}, ", ")

const (
	// HeaderTurn is the response header with the turn's id. It is set if the agent names its turns.
	HeaderTurn = "X-Ag-Turn-Id"

	// HeaderWaits is the response header of a message that was accepted while an earlier turn of its session waits for a
	// decision, with PipelineConfig.Gates: the ID of the gate. The message may have to wait until it is decided.
	HeaderWaits = "X-Ag-Waits-For"

	headerVersion       = "X-Ag-Version"
	headerBaggage       = "Baggage"
	headerFormatVersion = "X-Ag-Messages-Version"
	headerVercelStream  = "X-Vercel-Ai-Ui-Message-Stream"
)

// envelope returns the members that successes and errors have in common.
func (c *exchange) envelope() object {
	return newObject().text("version", bodyVersion).nonEmpty("trace_id", c.trace.TraceID).nonEmpty("span_id", c.trace.SpanID).
		nonEmpty("session_id", c.session)
}

// head sets the headers of all responses but a 406 for the media type.
func (c *exchange) head() {
	h := c.w.Header()
	h.Set(headerVersion, c.door.config.Version)
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

// vercelHead sets the headers of a response in the Vercel form.
func (c *exchange) vercelHead() {
	c.w.Header().Set(HeaderFormat, "vercel")
	c.w.Header().Set(headerFormatVersion, "v1")
}

// turnHead sets HeaderTurn if the agent has named the turn and the id is valid in a header, and HeaderWaits.
func (c *exchange) turnHead(t *turn) {
	if s, ok := t.stream.(*pipelineStream); ok && s.waits != "" {
		c.w.Header().Set(HeaderWaits, s.waits)
	}
	if t.named && t.at.printable() {
		c.w.Header().Set(HeaderTurn, t.at.Turn)
	}
}

// fail answers with an error before anything was streamed.
func (c *exchange) fail(e Error) {
	c.head()
	(&entrance.Refusal{RetryAfter: e.RetryAfter}).SetHeader(c.w.Header())
	if c.vercel && len(c.accept.Wanted) > 0 && c.accept.Wanted[0] == SSE {
		c.vercelHead()
	}
	status := newObject().with("code", topics.Raw(strconv.Itoa(e.Status))).text("message", e.Text).
		text("type", e.Type).with("outcome", e.outcome)
	c.json(e.Status, c.envelope().with("status", status.value()))
}

// succeed answers with a batch.
func (c *exchange) succeed(outputs topics.Raw) {
	c.head()
	if c.vercel {
		c.vercelHead()
	}
	status := newObject().with("code", topics.Raw("200")).text("message", "Success")
	data := newObject().with("outputs", outputs)
	c.json(http.StatusOK, c.envelope().with("status", status.value()).with("data", data.value()))
}

// notAcceptable answers that the agent supports none of the media types that the client accepts.
func (c *exchange) notAcceptable(supported []MediaType) {
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
		nonEmpty("trace_id", c.trace.TraceID).nonEmpty("span_id", c.trace.SpanID))
}

// detail answers a request that the door rejects itself.
func (c *exchange) detail(status int, text string) {
	c.json(status, newObject().text("detail", text))
}

// invalid answers a request with an invalid body.
func (c *exchange) invalid(status int, text string) {
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

func (c *exchange) json(status int, body object) {
	raw := respace(nil, body.value(), false)
	c.w.Header().Set("Content-Type", string(JSON))
	c.w.WriteHeader(status)
	for chunk := range slices.Chunk(raw, fullBuffer) {
		c.deadline()
		if _, err := c.w.Write(chunk); err != nil {
			return // the client has disconnected
		}
	}
}
