package invoke

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// unknownTool is the name of a tool without a name.
const unknownTool = "unknown_tool"

func (p *projection) toolCall(e folder.Event) {
	value, _ := e.Field("id")
	id, ok := idOf(value)
	if !ok {
		return
	}
	name, _ := e.Field("name")
	_, shown := p.calls[id]
	p.input(id, textOf(name), arguments(e.Field))
	if render, _ := e.Field("render"); kindOf(render) == '{' && !shown {
		p.render(id, render)
	}
}

// input adds a call's input, the first time with the start of the call. The call keeps its first name.
func (p *projection) input(id ident, name string, args topics.Raw) {
	known, shown := p.calls[id]
	if known.name != "" {
		name = known.name
	}
	p.content = true
	if shown && p.earlier(known) {
		// Until the next step begins, the reader updates the call. Then it would take the input for that of another call.
		if known.step == p.step && known.args != nil && !topics.Equal(known.args, args) {
			p.update(inputPart(id, name, args))
		}
		p.calls[id] = call{name, known.step, args}
		return
	}
	if known.step == 0 {
		p.add(part("tool-input-start").text("toolCallId", id.text).text("toolName", orUnknown(name)))
	}
	p.calls[id] = call{name, p.step, args}
	p.add(inputPart(id, name, args))
}

// earlier reports whether a call is shown in a step that has ended.
func (p *projection) earlier(c call) bool { return c.step > 0 && (c.step < p.step || p.paused) }

func inputPart(id ident, name string, args topics.Raw) object {
	return part("tool-input-available").text("toolCallId", id.text).text("toolName", orUnknown(name)).with("input", args)
}

func orUnknown(name string) string {
	if name == "" {
		return unknownTool
	}
	return name
}

func (p *projection) render(id ident, render topics.Raw) {
	p.update(part("data-render").with("data", newObject().text("toolCallId", id.text).with("render", render).value()))
}

func (p *projection) toolResult(e folder.Event) {
	value, _ := e.Field("id")
	id, ok := idOf(value)
	c, shown := p.calls[id]
	switch {
	case !ok || !shown:
		return
	case c.step == 0:
		p.input(id, c.name, first(c.args))
		c = p.calls[id]
	}
	c.args = nil
	p.calls[id] = c
	output, ok := e.Field("output")
	if !ok {
		output = null
	}
	denied, _ := e.Field("denied")
	failed, _ := e.Field("isError")
	switch {
	case truthy(denied):
		p.update(part("tool-output-denied").text("toolCallId", id.text))
	case truthy(failed):
		p.update(part("tool-output-error").text("toolCallId", id.text).with("errorText", asText(output)))
	default:
		if data, ok := e.Field("data"); ok && kindOf(data) != 'n' {
			output = data
		}
		p.update(part("tool-output-available").text("toolCallId", id.text).with("output", output))
	}
	p.content = true
	if render, _ := e.Field("render"); kindOf(render) == '{' {
		p.render(id, render)
	}
}

func (p *projection) interaction(e folder.Event) {
	kind, _ := e.Field("kind")
	value, _ := e.Field("id")
	request, _ := idOf(value)
	id := request.text
	payload, ok := e.Field("payload")
	if !ok {
		payload = null
	}
	switch k, _ := text(kind); k {
	case "user_approval":
		p.approval(id, payload)
	case "user_input":
		p.add(part("data-input-request").text("id", id).with("data", payload))
		p.content = true
	case "client_tool":
		p.clientTool(payload)
	default:
		if kind == nil {
			kind = null
		}
		data := newObject().with("kind", kind).with("payload", payload)
		p.add(part("data-interaction").text("id", id).with("data", data.value()))
		p.content = true
	}
}

// approval adds an approval request: the call, if it was not added before, then the question. The request's name for the
// tool replaces an earlier one.
func (p *projection) approval(request string, payload topics.Raw) {
	call := member(payload, "toolCall")
	id, ok := firstID(member(payload, "toolCallId"), member(call, "id"), member(call, "toolCallId"))
	if !ok {
		return
	}
	if request == "" {
		request = id.text
	}
	name := approvalName(call)
	if name == "" {
		name = textOf(member(payload, "toolName"))
	}
	args := arguments(func(name string) (topics.Raw, bool) { return field(call, name) })
	c, shown := p.calls[id]
	if shown && name != "" {
		c.name = name
	}
	if shown && p.earlier(c) { // it is asked again: the reader needs the call in this step
		if c.step = 0; !truthy(args) {
			args = first(c.args)
		}
	}
	if shown {
		p.calls[id] = c
	}
	if c.step == 0 || truthy(args) {
		p.input(id, name, args)
	}
	if manifest := member(payload, "manifest"); manifest != nil {
		data := newObject().text("toolCallId", id.text).text("approvalId", request).with("manifest", manifest)
		p.add(part("data-approval-manifest").text("id", id.text).with("data", data.value()))
	}
	p.add(part("tool-approval-request").text("approvalId", request).text("toolCallId", id.text))
	p.content = true
}

// approvalName returns the name of a call that needs approval: the resolved name, that of its specification, or a label.
func approvalName(call topics.Raw) string {
	names := []topics.Raw{member(call, "resolvedName")}
	for _, spec := range []string{"spec", "toolSpec", "resolvedTool", "tool"} {
		names = append(names, member(member(call, spec), "name"))
	}
	names = append(names, member(call, "name"), member(call, "title"), member(call, "kind"))
	return firstName(names...)
}

func (p *projection) clientTool(payload topics.Raw) {
	call := member(payload, "toolCall")
	id, ok := firstID(member(payload, "toolCallId"), member(call, "id"), member(call, "toolCallId"))
	if !ok {
		return
	}
	name := firstName(member(payload, "toolName"), member(call, "name"), member(call, "title"), member(call, "kind"))
	args := unwrap(first(member(payload, "input"), member(call, "rawInput"), member(call, "input")))
	p.input(id, name, args)
	if render := member(payload, "render"); kindOf(render) == '{' {
		p.render(id, render)
	}
}

// arguments returns a call's rawInput, or input if that is null, without an envelope.
func arguments(field func(string) (topics.Raw, bool)) topics.Raw {
	raw, _ := field("rawInput")
	input, _ := field("input")
	return unwrap(first(notNull(raw), notNull(input)))
}

// envelopeNames are the members that an envelope can have in addition to arguments.
var envelopeNames = []string{"tool", "server", "name", "toolName", "serverName", "tool_name", "server_name"}

// unwrap removes the envelope of some tool protocols: an object whose members are arguments, an object, and names only.
func unwrap(args topics.Raw) topics.Raw {
	inner := member(args, "arguments")
	if kindOf(inner) != '{' {
		return args
	}
	names := 0
	envelope := eachMember(args, func(name string, value topics.Raw) bool {
		if name == "arguments" {
			return true
		}
		names++
		return slices.Contains(envelopeNames, name) && kindOf(value) == '"'
	})
	if !envelope || names == 0 {
		return args
	}
	return inner
}
