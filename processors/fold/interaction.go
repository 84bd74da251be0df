package fold

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// request is an interaction request: a human or a browser shall answer.
type request struct {
	data     topics.Raw // nil where the event had none; no object only with Strict
	answered bool
}

func (f *Folder) interaction(o op) error {
	if o.kind == opResponse {
		if !isNull(o.f[0]) && hashable(o.f[0]) {
			f.answer('p', o.f[0])
		}
		return nil
	}
	data := o.f[0]
	if data != nil && !isObject(data) && !f.strict {
		return f.refuse("data is no object")
	}
	r := request{data: bytes.Clone(data), answered: len(o.f[1]) > 0}
	f.await('p', lookup(data, "id"))
	f.await('r', lookup(lookup(data, "payload"), "toolCallId"))
	f.size += len(data) + messageSize
	f.requests = append(f.requests, r)
	return nil
}

// await notes which answer the next request waits for: a response (p) or a tool result (r) with an id.
func (f *Folder) await(by byte, id topics.Raw) {
	if isNull(id) || !hashable(id) {
		return
	}
	key := f.answerKey(by, id)
	f.awaited[key] = append(f.awaited[key], len(f.requests))
}

func (f *Folder) answer(by byte, id topics.Raw) {
	if len(f.awaited) == 0 {
		return
	}
	key := f.answerKey(by, id)
	for _, i := range f.awaited[key] {
		f.requests[i].answered = true
	}
	delete(f.awaited, key)
}

func (f *Folder) answerKey(by byte, id topics.Raw) string {
	f.key = appendKey(append(f.key[:0], by), id)
	return string(f.key)
}

// pending is the request as a batch names it: its data, and the tool's name unless it says one itself.
func (r *request) pending() topics.Raw {
	data := trimSpace(r.data)
	if len(data) == 0 {
		return topics.Raw(`{"tool":null}`)
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
func toolOf(payload topics.Raw) topics.Raw {
	call := lookup(payload, "toolCall")
	for _, name := range []topics.Raw{
		lookup(payload, "toolName"), lookup(call, "name"), lookup(call, "title"), lookup(call, "kind"),
	} {
		if isString(name) && !falsy(name) {
			return name
		}
	}
	return topics.Raw("null")
}
