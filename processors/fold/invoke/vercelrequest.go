package invoke

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// continuation returns the id of the message that a Vercel client continues: the last one, if it is the assistant's.
func continuation(messages []topics.Raw) string {
	if len(messages) == 0 {
		return ""
	}
	last := messages[len(messages)-1]
	if role, _ := text(member(last, "role")); role != "assistant" {
		return ""
	}
	id, _ := text(member(last, "id"))
	return id
}

// canonical replaces the messages of a request, which are in the Vercel form, by canonical messages.
func canonical(r Request) Request {
	if kindOf(r.inputs("messages")) != '[' {
		return r
	}
	list := object{'['}
	for _, m := range r.Messages() {
		c, ok := canonicalMessage(m)
		if !ok {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, c...)
	}
	messages := topics.Raw(append(list, ']'))
	r.Data = replaced(r.Data, "inputs", replaced(member(r.Data, "inputs"), "messages", messages))
	return r
}

// replaced returns a copy of an object with another value for a member.
func replaced(whole topics.Raw, name string, value topics.Raw) topics.Raw {
	o := newObject()
	eachMember(whole, func(n string, v topics.Raw) bool {
		if n != name {
			o = o.with(n, v)
		}
		return true
	})
	return o.with(name, value).value()
}

// canonicalMessage returns {role, content}. The content is one text if all parts are texts, otherwise a list of blocks. ok
// is false for a message without a role. A message without parts is already canonical and returned unchanged.
func canonicalMessage(m topics.Raw) (topics.Raw, bool) {
	role := member(m, "role")
	if role == nil {
		return nil, false
	}
	parts := member(m, "parts")
	if kindOf(parts) != '[' {
		return m, true
	}
	var blocks []topics.Raw
	var texts strings.Builder
	allText := true
	for _, p := range elementsOf(parts) {
		for _, b := range blocksOf(p) {
			blocks = append(blocks, b.value)
			texts.WriteString(b.text)
			allText = allText && b.isText
		}
	}
	content := quote(texts.String())
	if !allText {
		content = array(blocks)
	}
	return newObject().with("role", role).with("content", content).value(), true
}

func array(values []topics.Raw) topics.Raw {
	list := []byte{'['}
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, v...)
	}
	return append(list, ']')
}

// block is a canonical content block.
type block struct {
	value  topics.Raw
	text   string
	isText bool
}

func blocksOf(p topics.Raw) []block {
	kind, _ := text(member(p, "type"))
	switch {
	case kind == "text":
		t := member(p, "text")
		s, ok := text(t)
		if !ok {
			return nil
		}
		return []block{{newObject().text("type", "text").with("text", t).value(), s, true}}
	case kind == "file":
		return []block{{value: fileBlock(p)}}
	case isResultMarker(kind):
		list := []block{}
		if _, ok := field(p, "input"); ok {
			list = append(list, block{value: callBlock(p, textOf(member(p, "toolName")))})
		}
		return append(list, block{value: resultBlock(p, kind)})
	case kind == "tool-approval-request":
		return nil
	case kind == "tool-approval-response":
		return []block{{value: approvalBlock(p)}}
	case kind == "dynamic-tool":
		return toolBlocks(p, textOf(member(p, "toolName")))
	case strings.HasPrefix(kind, "tool-"):
		return toolBlocks(p, strings.TrimPrefix(kind, "tool-"))
	}
	return nil
}

func fileBlock(p topics.Raw) topics.Raw {
	own := member(member(p, "providerMetadata"), "agenta")
	if id, _ := text(member(own, "attachmentId")); isUUID(id) {
		return newObject().text("type", "attachment").text("attachmentId", id).with("filename", member(p, "filename")).
			with("mimeType", member(p, "mediaType")).with("size", member(own, "size")).value()
	}
	media, _ := text(member(p, "mediaType"))
	kind := "resource"
	if strings.HasPrefix(media, "image/") {
		kind = "image"
	}
	return newObject().text("type", kind).with("uri", member(p, "url")).with("data", member(p, "data")).
		with("mimeType", member(p, "mediaType")).value()
}

// isUUID reports whether s is a UUID in its canonical form, in lower case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (s[i] == '-') {
			return false
		}
	}
	return strings.Trim(s, "0123456789abcdef-") == ""
}

func isResultMarker(kind string) bool {
	switch strings.ReplaceAll(strings.ToLower(kind), "_", "-") {
	case "tool-output-available", "tool-output-error", "tool-output-denied":
		return true
	}
	return false
}

func callBlock(p topics.Raw, name string) topics.Raw {
	return newObject().text("type", "tool_call").with("toolCallId", member(p, "toolCallId")).nonEmpty("toolName", name).
		with("input", member(p, "input")).value()
}

// toolBlocks returns a call, and its result if the part has one.
func toolBlocks(p topics.Raw, name string) []block {
	list := []block{{value: callBlock(p, name)}}
	state, _ := text(member(p, "state"))
	_, output := field(p, "output")
	_, decided := approval(p)
	switch {
	case member(p, "errorText") != nil, state == "output-error", output, state == "output-available":
		list = append(list, block{value: resultOf(p, name, state)})
	case decided, state == "output-denied":
		list = append(list, block{value: result(p, name).with("output", decision(p, state)).value()})
	}
	return list
}

// resultOf returns the result in a tool part.
func resultOf(p topics.Raw, name, state string) topics.Raw {
	wrong := member(p, "errorText")
	if wrong != nil || state == "output-error" {
		return result(p, name).with("output", first(wrong, member(p, "output"))).
			with("isError", topics.Raw("true")).value()
	}
	return result(p, name).with("output", first(member(p, "output"))).with("isError", topics.Raw("false")).value()
}

// resultBlock returns the result in a part whose type is a marker for an output instead of a tool's name.
func resultBlock(p topics.Raw, marker string) topics.Raw {
	name := textOf(member(p, "toolName"))
	switch strings.ReplaceAll(strings.ToLower(marker), "_", "-") {
	case "tool-output-error":
		return resultOf(p, name, "output-error")
	case "tool-output-denied":
		return result(p, name).with("output", decision(p, "output-denied")).value()
	}
	return resultOf(p, name, "output-available")
}

func result(p topics.Raw, name string) object {
	return newObject().text("type", "tool_result").with("toolCallId", member(p, "toolCallId")).nonEmpty("toolName", name)
}

// approval returns the decision on a call that needs approval; ok is false if there is none.
func approval(p topics.Raw) (approved, ok bool) {
	v := member(member(p, "approval"), "approved")
	return kindOf(v) == 't', kindOf(v) == 't' || kindOf(v) == 'f'
}

func decision(p topics.Raw, state string) topics.Raw {
	approved, ok := approval(p)
	a := member(p, "approval")
	return verdict(ok && approved && state != "output-denied", member(a, "id"), member(a, "reason"))
}

func verdict(approved bool, token, reason topics.Raw) topics.Raw {
	return newObject().with("approved", boolean(approved)).with("interactionToken", token).with("reason", reason).value()
}

// approvalBlock returns the answer to an approval request.
func approvalBlock(p topics.Raw) topics.Raw {
	id := first(member(p, "toolCallId"), member(p, "approvalId"))
	o := newObject().text("type", "tool_result").with("toolCallId", id)
	switch approved := member(p, "approved"); {
	case member(p, "output") != nil:
		return o.with("output", member(p, "output")).value()
	case kindOf(approved) == 't' || kindOf(approved) == 'f':
		return o.with("output", verdict(kindOf(approved) == 't', member(p, "approvalId"), member(p, "reason"))).value()
	}
	return o.with("output", first(member(p, "reason"))).value()
}
