package invoke

import (
	"errors"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// projection converts events to the parts of the Vercel UI message stream. Every part conforms to the schema of the ai
// package. No part refers to a missing part, at which the reader of the ai package would stop. It does no I/O.
type projection struct {
	messages, thoughts int            // number of message and thought events
	open               map[ident]bool // open text blocks by id; false: the reader needs another start
	thinking           map[ident]bool // open reasoning blocks by id, likewise
	calls              map[ident]call // the calls whose input was added
	step               int            // number of the current step, from 1
	stepping           bool           // the step has begun
	paused             bool           // the turn has paused: the next part begins a step
	usage              object         // from the last usage event; nil for none
	reason             *string        // the last stop reason of a done event
	content, failed    bool           // a part with content, or with an error, was added
	parts              []topics.Raw   // parts of the current event
}

func newProjection() *projection {
	return &projection{
		open: map[ident]bool{}, thinking: map[ident]bool{}, calls: map[ident]call{}, step: 1, stepping: true,
	}
}

// event returns the parts of the next event. They are valid until the next call.
func (p *projection) event(e folder.Event) []topics.Raw {
	p.parts = p.parts[:0]
	if d := e.Data(); d != nil && kindOf(d) != '{' {
		return nil // a malformed event, which fold leaves out, too
	}
	if project, ok := projections[e.Type]; ok {
		if e.Type != "done" {
			p.continues()
		}
		project(p, e)
	}
	return p.parts
}

var projections = map[string]func(*projection, folder.Event){
	"message":             (*projection).message,
	"message_start":       func(p *projection, e folder.Event) { p.blockStart(e, "text", p.open) },
	"message_delta":       func(p *projection, e folder.Event) { p.blockDelta(e, "text", p.open) },
	"message_end":         func(p *projection, e folder.Event) { p.blockEnd(e, "text", p.open) },
	"thought":             (*projection).thought,
	"thought_start":       func(p *projection, e folder.Event) { p.blockStart(e, "reasoning", p.thinking) },
	"thought_delta":       func(p *projection, e folder.Event) { p.blockDelta(e, "reasoning", p.thinking) },
	"thought_end":         func(p *projection, e folder.Event) { p.blockEnd(e, "reasoning", p.thinking) },
	"tool_call":           (*projection).toolCall,
	"tool_result":         (*projection).toolResult,
	"interaction_request": (*projection).interaction,
	"data":                (*projection).dataPart,
	"file":                (*projection).file,
	"attachment_delivery": (*projection).attachment,
	"usage":               (*projection).usageTotals,
	"error":               (*projection).failure,
	"done":                (*projection).done,
}

func part(kind string) object { return newObject().text("type", kind) }

// whole adds a complete block.
func (p *projection) whole(kind, id string, value topics.Raw) {
	p.add(part(kind+"-start").text("id", id))
	p.add(part(kind+"-delta").text("id", id).with("delta", asText(value)))
	p.add(part(kind+"-end").text("id", id))
}

func (p *projection) message(e folder.Event) {
	p.messages++
	value, _ := e.Field("text")
	p.whole("text", numbered("text", p.messages), value)
	p.content = true
}

func (p *projection) thought(e folder.Event) {
	p.thoughts++
	value, _ := e.Field("text")
	p.whole("reasoning", numbered("reasoning", p.thoughts), value)
}

func (p *projection) blockStart(e folder.Event, kind string, open map[ident]bool) {
	id, ok := blockID(e)
	if !ok {
		return
	}
	p.add(part(kind+"-start").text("id", id.text))
	open[id] = true
}

// blockDelta adds a delta, unless its block is not open or it is not a string: fold drops it, too.
func (p *projection) blockDelta(e folder.Event, kind string, open map[ident]bool) {
	id, ok := blockID(e)
	started, isOpen := open[id]
	delta, there := e.Field("delta")
	if !ok || !isOpen || !there || kindOf(delta) != '"' {
		return
	}
	if !started || p.paused { // it was open when the turn paused
		p.add(part(kind+"-start").text("id", id.text))
		open[id] = true
	}
	p.add(part(kind+"-delta").text("id", id.text).with("delta", delta))
	p.content = p.content || kind == "text"
}

func (p *projection) blockEnd(e folder.Event, kind string, open map[ident]bool) {
	id, ok := blockID(e)
	if !ok {
		return
	}
	started := open[id] && !p.paused
	if delete(open, id); !started {
		return // the reader has no such block
	}
	p.add(part(kind+"-end").text("id", id.text))
}

func (p *projection) dataPart(e folder.Event) {
	kind := "data-data"
	if name, _ := e.Field("name"); kindOf(name) == '"' {
		if s, _ := text(name); s != "" {
			kind = "data-" + s
		}
	}
	data, ok := e.Field("data")
	if !ok {
		data = null
	}
	o := part(kind).with("data", data)
	transient, _ := e.Field("transient")
	if truthy(transient) {
		o = o.with("transient", topics.Raw("true"))
	} else {
		p.content = true // transient data does not count as output
	}
	p.add(o)
}

func (p *projection) file(e folder.Event) {
	url, _ := e.Field("url")
	media, _ := e.Field("mediaType")
	if !someText(url) || !someText(media) {
		return
	}
	p.add(part("file").with("url", url).with("mediaType", media))
	p.content = true
}

func (p *projection) attachment(e folder.Event) {
	data := newObject()
	for _, name := range []string{"attachmentId", "outcome", "reasonCode", "workingPath"} {
		if value, ok := e.Field(name); ok && kindOf(value) != 'n' {
			data = data.with(name, value)
		}
	}
	p.add(part("data-attachment-delivery").with("data", data.value()))
	p.content = true
}

// usageTotals keeps the last totals for the finish part.
func (p *projection) usageTotals(e folder.Event) {
	p.usage = nil
	for _, name := range []string{"input", "output", "total", "cost"} {
		if value, ok := e.Field(name); ok && kindOf(value) != 'n' {
			if p.usage == nil {
				p.usage = newObject()
			}
			p.usage = p.usage.with(name, value)
		}
	}
}

func (p *projection) failure(e folder.Event) {
	message, _ := e.Field("message")
	p.fail(runnerError, asText(message))
}

// fail adds an error: a part with its code, then the error part that every client supports.
func (p *projection) fail(code string, text topics.Raw) {
	p.failed = true
	p.update(part("data-agent-error").with("data", newObject().text("code", code).with("errorText", text).value()))
	p.update(part("error").with("errorText", text))
}

func (p *projection) done(e folder.Event) {
	if reason, _ := e.Field("stopReason"); kindOf(reason) == '"' {
		s, _ := text(reason)
		p.reason = &s
	}
}

// end returns the parts after the last event.
func (p *projection) end(o outcome, traceID string) []topics.Raw {
	p.parts = p.parts[:0]
	if o.err != nil && !p.failed {
		e := streamError(o.err)
		var superseded *Superseded
		if errors.As(o.err, &superseded) {
			e.Code, e.Text = "superseded", "the attempt was superseded"
		}
		p.fail(e.Code, quote(e.Text))
	}
	if p.stepping {
		p.update(part("finish-step"))
	}
	if !p.content && !p.failed {
		p.fail("no_output", quote("The agent produced no output."))
	}
	finish := part("finish")
	if p.reason != nil {
		finish = finish.text("finishReason", finishReason(*p.reason))
	}
	metadata := newObject()
	if p.usage != nil {
		metadata = metadata.with("usage", p.usage.value())
	}
	metadata = metadata.nonEmpty("traceId", traceID)
	if len(metadata) > 1 {
		finish = finish.with("messageMetadata", metadata.value())
	}
	p.update(finish)
	return p.parts
}

// finishReason converts a stop reason to one of the ai package. Unknown stop reasons become "other": the package does not
// accept "unknown".
func finishReason(reason string) string {
	switch reason = strings.ToLower(strings.TrimSpace(reason)); reason {
	case "stop", "length", "content-filter", "tool-calls", "error", "other":
		return reason
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens":
		return "length"
	case "tool_use", "tool_calls", "function_call":
		return "tool-calls"
	case "refusal", "content_filter":
		return "content-filter"
	}
	return "other"
}
