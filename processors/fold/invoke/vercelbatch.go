package invoke

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// uiMessages are batch messages as the ai package has them. Each has a role of its own that the package knows: calls
// and their results are parts of messages of the assistant, a result whose call is there stands in the call's part.
// continuation is the id that the last of the assistant's messages gets.
func uiMessages(messages []jsontext.Value, scope, continuation string) []jsontext.Value {
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
			at, known := calls[id]
			if !named || !known {
				at = len(list)
				list = append(list, uiMessage{role: "assistant", tool: &toolPart{name: unknownTool, id: id.text, input: null}})
			}
			list[at].tool.settle(m)
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
	ui := make([]jsontext.Value, len(list))
	for i, m := range list {
		id := "msg-" + scope + "-" + strconv.Itoa(i+1)
		if i == last && continuation != "" {
			id = continuation
		}
		ui[i] = m.value(id)
	}
	return ui
}

// uiMessage is a message of text, or of one call.
type uiMessage struct {
	role string
	text jsontext.Value // nil for none
	tool *toolPart
}

type toolPart struct {
	name, id      string
	input         jsontext.Value
	state         string
	output, wrong jsontext.Value
}

func textMessage(m jsontext.Value) uiMessage {
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

func callMessage(m jsontext.Value, id string) uiMessage {
	name := toolName(member(m, "tool_name"))
	if name == "" {
		name = unknownTool
	}
	input, _ := field(m, "input")
	return uiMessage{role: "assistant", tool: &toolPart{name: name, id: id, input: input, state: "input-available"}}
}

// settle gives a call its result; of several the last counts.
func (t *toolPart) settle(m jsontext.Value) {
	content, ok := field(m, "content")
	if !ok {
		content = null
	}
	t.output, t.wrong, t.state = content, nil, "output-available"
	if truthy(member(m, "is_error")) {
		t.output, t.wrong, t.state = nil, asText(content), "output-error"
	}
}

func (m uiMessage) value(id string) jsontext.Value {
	parts := jsontext.Value("[]")
	switch {
	case m.tool != nil:
		t := *m.tool
		o := newObject().text("type", "dynamic-tool").text("toolName", t.name).text("toolCallId", t.id).
			text("state", t.state).with("input", t.input).with("output", t.output).with("errorText", t.wrong)
		parts = jsontext.Value("[" + string(o.value()) + "]")
	case m.text != nil:
		parts = jsontext.Value("[" + string(newObject().text("type", "text").with("text", m.text).value()) + "]")
	}
	return newObject().text("id", id).text("role", m.role).with("parts", parts).value()
}
