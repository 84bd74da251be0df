package channel

import (
	"cmp"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// message is a delivery to a channel.
type message struct {
	origin topics.Origin
	ask    *adapter.Ask
	// content is Markdown; failed says that it is the text for an error.
	content string
	failed  bool
}

// readMessage reads a delivery. It reports false if the delivery has no valid origin.
func readMessage(d topics.Delivery) (message, bool) {
	origin, err := topics.DecodeOrigin(topics.OriginOf(d.Channel))
	if err != nil {
		return message{}, false
	}
	m := message{origin: origin, ask: askOf(topics.GateAskOf(d.Channel))}
	found := topics.LookupAll(d.Body, "content", "status", "error")
	m.content = topics.Text(found[0])
	if status := topics.TextOf(found[1]); status != nil && *status == "error" {
		e := topics.LookupAll(found[2], "code", "message")
		m.failed, m.content = true, errorText(topics.OutputError{Code: topics.Code(topics.Text(e[0])), Message: topics.Text(e[1])})
	}
	return m, true
}

// askOf reads the request for approval of a reply descriptor, nil if there is none.
func askOf(gate topics.Raw) *adapter.Ask {
	if gate == nil {
		return nil
	}
	found := topics.LookupAll(gate, "gate_id", "tool", "expires_ms")
	ask := adapter.Ask{GateID: topics.Text(found[0]), Tool: topics.Text(found[1]), ExpiresMS: number(found[2])}
	if ask.GateID == "" {
		return nil
	}
	return &ask
}

// number returns an integer, 0 if the value is none.
func number(value topics.Raw) (n int64) {
	for _, c := range value {
		if c < '0' || c > '9' || n > 1<<53 {
			return 0
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// rendering is how a message is rendered.
type rendering struct {
	format text.Format
	prefix Prefix
	limit  text.Limit
}

// renderingOf returns how an account wants a message to be rendered.
func renderingOf(a Account, t adapter.Traits) rendering {
	r := rendering{format: cmp.Or(a.Format, t.Format, text.Markdown), prefix: a.Prefix, limit: t.Limit}
	if t.Spoken {
		r.limit = text.Limit{}
	}
	return r
}

// pinned returns the rendering of a report.
func (r Report) pinned() rendering {
	return rendering{format: r.Format, prefix: r.Prefix, limit: text.Limit{Max: r.Limit, Unit: r.Unit}}
}

// chunks returns the texts to send.
func (r rendering) chunks(content, agent string) []string {
	bold := r.prefix == PrefixBoldBracket
	if (bold || r.prefix == PrefixBracket) && text.Render(content, r.format) != "" { // a name alone is no answer
		content = text.Prefix(content, agent, bold)
	}
	return text.Split(content, r.format, r.limit)
}

// report returns the report before the first chunk.
func (r rendering) report(chunks []string) Report {
	return Report{
		Status: StatusPartial, Format: r.format, Prefix: r.prefix, Limit: r.limit.Max, Unit: r.limit.Unit,
		Digest: digestOf(chunks), Chunks: len(chunks),
	}
}
