package fold

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// request is an interaction request: a human or a browser shall answer.
type request struct {
	data     jsontext.Value // nil where the event had none; no object only with Strict
	id       string         // key of its id, empty for none
	call     string         // key of the tool call it is about, empty for none
	answered bool
}

func (f *Folder) interaction(o op) error {
	if o.kind == opResponse {
		if !isNull(o.f[0]) && hashable(o.f[0]) {
			f.answer(f.keyOf(o.f[0]))
		}
		return nil
	}
	data := o.f[0]
	if data != nil && !isObject(data) && !f.strict {
		return f.refuse("data is no object")
	}
	r := request{data: bytes.Clone(data), answered: len(o.f[1]) > 0}
	if id := lookup(data, "id"); !isNull(id) && hashable(id) {
		r.id = f.keyOf(id)
	}
	if call := lookup(lookup(data, "payload"), "toolCallId"); !isNull(call) && hashable(call) {
		r.call = f.keyOf(call)
	}
	f.size += len(data) + messageSize
	f.requests = append(f.requests, r)
	return nil
}

func (f *Folder) answer(id string) {
	for i := range f.requests {
		if f.requests[i].id == id {
			f.requests[i].answered = true
		}
	}
}

func (f *Folder) answerCall(call string) {
	for i := range f.requests {
		if f.requests[i].call == call {
			f.requests[i].answered = true
		}
	}
}

// pending is the request as a batch names it: its data, and the tool's name unless it says one itself.
func (r *request) pending() jsontext.Value {
	data := trimSpace(r.data)
	if len(data) == 0 {
		return jsontext.Value(`{"tool":null}`)
	}
	if lookup(data, "tool") != nil {
		return bytes.Clone(data)
	}
	tool := toolOf(lookup(data, "payload"))
	b := make([]byte, 0, len(data)+len(tool)+len(`,"tool":`))
	b = append(b, data[:len(data)-1]...)
	if !falsy(data) {
		b = append(b, ',')
	}
	return append(append(append(b, `"tool":`...), tool...), '}')
}

// toolOf derives a tool's name: the first of these that is a string and not empty, as it came, else null.
func toolOf(payload jsontext.Value) jsontext.Value {
	call := lookup(payload, "toolCall")
	for _, name := range []jsontext.Value{
		lookup(payload, "toolName"), lookup(call, "name"), lookup(call, "title"), lookup(call, "kind"),
	} {
		if isString(name) && !falsy(name) {
			return name
		}
	}
	return jsontext.Value("null")
}
