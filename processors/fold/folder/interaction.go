package folder

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// request is an interaction request, which a person or a browser answers.
type request struct {
	data     topics.Raw // nil if the event had none; with Strict it can be a value that is not an object
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
		return f.countMalformed("data is not an object")
	}
	r := request{data: bytes.Clone(data), answered: len(o.f[1]) > 0}
	f.await('p', lookup(data, "id"))
	f.await('r', lookup(lookup(data, "payload"), "toolCallId"))
	f.size += len(data) + messageSize
	f.requests = append(f.requests, r)
	return nil
}

// await registers what answers the next request: a response (p) or a tool result (r) with that id.
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

// pending returns the request in the form of Batch.PendingInteraction: its data with the tool's name, which is added if
// the data has no member tool.
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

// toolOf returns the name of the tool that a request is about: the first candidate that is a string and not empty, or
// null.
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
