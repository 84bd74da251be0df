package turn

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// A person may change the arguments of a call before it runs. The conversation then shows the arguments that ran, and the
// call's result has a member that says so: otherwise the model, which did not ask for these arguments, would try its own
// again.

// approvalMember is the member of the result of a call with changed arguments.
const approvalMember = "turntable_approval"

const editedMember = `"` + approvalMember + `":{"edited":true,"note":"A person changed the arguments of this call before it ran. ` +
	`The call in the conversation shows the arguments that ran. Do not repeat it with the original ones."}`

// markEdited adds the member to a tool's result, which is an object or empty for null.
func markEdited(result []byte) []byte {
	result = bytes.TrimSpace(result)
	if len(result) == 0 {
		return []byte("{" + editedMember + "}")
	}
	if _, taken := topics.Lookup(result, approvalMember); taken {
		result = slices.Concat([]byte(`{"result":`), result, []byte("}"))
	}
	body := bytes.TrimSpace(result[:len(result)-1])
	marked := append(make([]byte, 0, len(result)+len(editedMember)+1), body...)
	if len(body) > 1 {
		marked = append(marked, ',')
	}
	return append(append(marked, editedMember...), '}')
}

// withArguments returns a conversation in which the newest call with this tool_use_id has other arguments: the member input of
// its tool_use block. Of several such calls in one message it is the one with the arguments from. All other bytes stay as
// they are. ok is false if there is no such call.
func withArguments(conversation topics.Raw, id string, from, to topics.Raw) (changed topics.Raw, ok bool) {
	if len(to) == 0 {
		to = topics.Raw("{}")
	}
	for _, message := range slices.Backward(elementsOf(conversation)) {
		at, found := argumentsIn(conversation, message, id, from)
		if !found {
			continue
		}
		value := []byte(to)
		if at.from == at.to { // the block has no arguments: at is the position of its closing brace
			value = append([]byte(`,"input":`), to...)
		}
		return slices.Concat(conversation[:at.from], value, conversation[at.to:]), true
	}
	return nil, false
}

// argumentsIn returns the position of the arguments of a call in a message of a conversation.
func argumentsIn(conversation topics.Raw, message span, id string, from topics.Raw) (at span, found bool) {
	content, ok := memberOf(conversation, message, "content")
	if !ok || conversation[content.from] != '[' {
		return span{}, false
	}
	for _, b := range elementsOf(conversation[content.from:content.to]) {
		block := span{content.from + b.from, content.from + b.to}
		raw := conversation[block.from:block.to]
		if textMember(raw, "type") != "tool_use" || textMember(raw, "id") != id {
			continue
		}
		input, ok := memberOf(conversation, block, "input")
		if !ok {
			input = span{block.to - 1, block.to - 1}
		}
		if same := topics.Equal(conversation[input.from:input.to], from); same || !found {
			at, found = input, true
			if same {
				break
			}
		}
	}
	return at, found
}

// memberOf returns the position of the value of an object's member. If the name is repeated, the last one counts.
func memberOf(text []byte, object span, name string) (at span, found bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text[object.from:object.to]),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return span{}, false
	}
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return span{}, false
		}
		wanted := t.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return span{}, false
		}
		if end := object.from + int(dec.InputOffset()); wanted {
			at, found = span{end - len(value), end}, true
		}
	}
	return at, found
}
