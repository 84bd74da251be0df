package invoke

import (
	"strconv"

	"github.com/turntable-streams/turntable/topics"
)

// uiMessages converts batch messages to messages of the ai package, which has no role tool: calls and their results become
// parts of the assistant's messages. A result is added to the part of its call, if there is one. continuation is the id of
// the last of the assistant's messages, unless it is empty.
func uiMessages(messages []topics.Raw, scope, continuation string) []topics.Raw {
	var list []uiMessage
	calls := map[ident]int{}
	for _, m := range messages {
		id, named := idOf(member(m, "tool_call_id"))
		_, call := field(m, "input")
		_, result := field(m, "is_error")
		switch {
		case call:
			if named {
				calls[id] = len(list)
			}
			list = append(list, callMessage(m, id.text))
		case result:
			at, called := calls[id]
			if !named || !called {
				at = len(list)
				list = append(list, uiMessage{role: "assistant", tool: &toolPart{name: unknownTool, id: id.text, input: null}})
			}
			list[at].tool.setResult(m)
		default:
			list = append(list, textMessage(m))
		}
	}
	last := -1
	for i, m := range list {
		if m.role == "assistant" {
			last = i
		}
	}
	ui := make([]topics.Raw, len(list))
	for i, m := range list {
		id := "msg-" + scope + "-" + strconv.Itoa(i+1)
		if i == last && continuation != "" {
			id = continuation
		}
		ui[i] = m.value(id)
	}
	return ui
}

// uiMessage is a message with a text or with one tool call.
type uiMessage struct {
	role string
	text topics.Raw // nil for none
	tool *toolPart
}

type toolPart struct {
	name, id          string
	input             topics.Raw
	state             string
	output, errorText topics.Raw
}

func textMessage(m topics.Raw) uiMessage {
	role, _ := text(member(m, "role"))
	if role != "user" && role != "system" {
		role = "assistant"
	}
	u := uiMessage{role: role}
	if content := asText(member(m, "content")); len(content) > 2 {
		u.text = content
	}
	return u
}

func callMessage(m topics.Raw, id string) uiMessage {
	name := textOf(member(m, "tool_name"))
	if name == "" {
		name = unknownTool
	}
	input, _ := field(m, "input")
	return uiMessage{role: "assistant", tool: &toolPart{name: name, id: id, input: input, state: "input-available"}}
}

// setResult sets a call's result. The last of several results is used.
func (t *toolPart) setResult(m topics.Raw) {
	content, ok := field(m, "content")
	if !ok {
		content = null
	}
	t.output, t.errorText, t.state = content, nil, "output-available"
	if truthy(member(m, "is_error")) {
		t.output, t.errorText, t.state = nil, asText(content), "output-error"
	}
}

func (m uiMessage) value(id string) topics.Raw {
	parts := topics.Raw("[]")
	switch {
	case m.tool != nil:
		t := *m.tool
		o := newObject().text("type", "dynamic-tool").text("toolName", t.name).text("toolCallId", t.id).
			text("state", t.state).with("input", t.input).with("output", t.output).with("errorText", t.errorText)
		parts = topics.Raw("[" + string(o.value()) + "]")
	case m.text != nil:
		parts = topics.Raw("[" + string(newObject().text("type", "text").with("text", m.text).value()) + "]")
	}
	return newObject().text("id", id).text("role", m.role).with("parts", parts).value()
}
