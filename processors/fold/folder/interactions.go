package folder

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// Interaction is an interaction request of a turn: something that a person or a browser decides.
type Interaction struct {
	// Index is the request's number among those of the turn, from 0, answered ones included.
	Index int
	// ID is the request's id as text, Kind its kind, and ToolUseID the id of the call that it is about. They are empty if
	// the request has none. They need not be unique.
	ID, Kind, ToolUseID string
	// Tool is the most stable name of the tool: the resolved name, that of its specification, its name, or else a label.
	// Names are all its names, Tool and that of its call included. Both are empty if the request names none.
	Tool  string
	Names []string
	// Args are the arguments of the request, or else those of its call; nil for none.
	Args topics.Raw
	// Payload is the request's payload; nil for none.
	Payload topics.Raw
	// Answered reports whether a response or a tool result has answered the request.
	Answered bool
}

// Interactions returns the turn's interaction requests in order, without those whose data is not an object. Later calls of
// the folder do not change the result.
func (f *Folder) Interactions() []Interaction {
	var list []Interaction
	for i := range f.requests {
		if r := &f.requests[i]; r.data == nil || isObject(r.data) {
			list = append(list, f.interactionAt(i))
		}
	}
	return list
}

func (f *Folder) interactionAt(i int) Interaction {
	data := trimSpace(f.requests[i].data)
	payload := lookup(data, "payload")
	call := lookup(payload, "toolCall")
	id := firstValue(lookup(payload, "toolCallId"), lookup(call, "id"), lookup(call, "toolCallId"))
	a := Interaction{
		Index: i, ID: idText(lookup(data, "id")), ToolUseID: idText(id), Payload: bytes.Clone(payload),
		Answered: f.requests[i].answered,
	}
	if kind := lookup(data, "kind"); isString(kind) {
		a.Kind = unquote(kind)
	}
	a.addNames(lookup(call, "resolvedName"))
	for _, spec := range []string{"spec", "toolSpec", "resolvedTool", "tool"} {
		a.addNames(lookup(lookup(call, spec), "name"))
	}
	a.addNames(lookup(payload, "toolName"), lookup(call, "name"), lookup(call, "title"), lookup(call, "kind"))
	a.Args = firstValue(lookup(call, "rawInput"), lookup(call, "input"), lookup(payload, "input"))
	if announced, ok := f.callOf(id); ok {
		a.addNames(announced.name)
		if a.Args == nil {
			a.Args = firstValue(announced.payload)
		}
	}
	if len(a.Names) > 0 {
		a.Tool = a.Names[0]
	}
	a.Args = bytes.Clone(a.Args)
	return a
}

// callOf returns the message of a call.
func (f *Folder) callOf(id topics.Raw) (message, bool) {
	if isNull(id) || !hashable(id) {
		return message{}, false
	}
	i, ok := f.calls[f.keyOf(id)]
	if !ok {
		return message{}, false
	}
	return f.messages[i], true
}

// addNames adds names that are strings, not empty, and new.
func (a *Interaction) addNames(names ...topics.Raw) {
next:
	for _, n := range names {
		if !isString(n) || falsy(n) {
			continue
		}
		name := unquote(n)
		for _, known := range a.Names {
			if known == name {
				continue next
			}
		}
		a.Names = append(a.Names, name)
	}
}

// firstValue returns the first value that is not null; nil if there is none.
func firstValue(values ...topics.Raw) topics.Raw {
	for _, v := range values {
		if !isNull(v) {
			return v
		}
	}
	return nil
}

// idText returns an id as text; empty for null and for a value that cannot be an id.
func idText(id topics.Raw) string {
	switch {
	case isNull(id) || !hashable(id):
		return ""
	case isString(id):
		return unquote(id)
	}
	return string(appendKey(nil, id))
}
