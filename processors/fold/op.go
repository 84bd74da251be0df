package fold

import "github.com/turntable-streams/turntable/topics"

// op is what an event does to a fold. Folder and Log both know events as ops only, so a log folds as its events do.
type op struct {
	kind byte
	// The op's fields, as many as arity says; nil for an absent one. They alias the event.
	f [6]topics.Raw
}

// The kinds of ops and their fields. The letters are stored in logs: never give one another meaning.
const (
	opNone     = 0
	opMessage  = 'm' // text
	opStart    = 's' // id
	opDelta    = 'd' // id, delta without its quotes
	opNoDelta  = 'b' // id: a delta that is no string
	opEnd      = 'x' // id
	opCall     = 'c' // id, name, input
	opResult   = 'r' // id, output, isError, data, render, denied (true or absent)
	opRequest  = 'q' // data, answered (true or absent; in snapshots only)
	opResponse = 'p' // id
	opUsage    = 'u' // data
	opError    = 'e' // message
	opDone     = 'D' // stopReason
	opBad      = '!' // what is wrong with it, as text
	opBadCount = '#' // how many malformed events, in snapshots only
)

func arity(kind byte) int {
	switch kind {
	case opMessage, opStart, opNoDelta, opEnd, opResponse, opUsage, opError, opDone, opBad, opBadCount:
		return 1
	case opDelta, opRequest:
		return 2
	case opCall:
		return 3
	case opResult:
		return 6
	}
	return 0
}

// opOf reads an event.
func opOf(e Event) op {
	if e.Type == "message_delta" {
		return deltaOp(e)
	}
	kind := folded(e.Type)
	if kind == opNone {
		return op{}
	}
	if kind == opRequest {
		// Whether it may be no object shows at the end only.
		return op{kind: opRequest, f: [6]topics.Raw{e.data}}
	}
	if e.data != nil && !isObject(e.data) {
		switch kind {
		case opResponse, opUsage:
			return op{}
		case opError:
			return op{kind: opError}
		}
		return bad("data is no object")
	}
	o := op{kind: kind}
	switch kind {
	case opMessage:
		o.read(e.data, "text")
	case opStart, opEnd, opResponse:
		o.read(e.data, "id")
	case opCall:
		o.read(e.data, "id", "name", "input", "rawInput")
		if !isNull(o.f[3]) {
			o.f[2] = o.f[3]
		}
		o.f[3] = nil
	case opResult:
		o.read(e.data, "id", "output", "isError", "data", "render", "denied")
		if falsy(o.f[5]) {
			o.f[5] = nil
		} else {
			o.f[5] = topics.Raw("true")
		}
	case opUsage:
		o.f[0] = e.data
	case opError:
		o.read(e.data, "message")
	case opDone:
		o.read(e.data, "stopReason")
	}
	if (kind == opStart || kind == opCall) && !hashable(o.f[0]) {
		return bad("id is an array or object")
	}
	return o
}

func deltaOp(e Event) op {
	switch {
	case e.data != nil && !isObject(e.data):
		return bad("data is no object")
	case !hashable(e.id):
		return bad("id is an array or object")
	case e.delta == nil:
		return op{kind: opDelta, f: [6]topics.Raw{e.id, {}}}
	case !isString(e.delta):
		return op{kind: opNoDelta, f: [6]topics.Raw{e.id}}
	}
	return op{kind: opDelta, f: [6]topics.Raw{e.id, e.delta[1 : len(e.delta)-1]}}
}

// folded is what an event of a type does; nothing, for types that fold does not read.
func folded(kind string) byte {
	switch kind {
	case "message":
		return opMessage
	case "message_start":
		return opStart
	case "message_end":
		return opEnd
	case "tool_call":
		return opCall
	case "tool_result":
		return opResult
	case "interaction_request":
		return opRequest
	case "interaction_response":
		return opResponse
	case "usage":
		return opUsage
	case "error":
		return opError
	case "done":
		return opDone
	}
	return opNone
}

func bad(what string) op { return op{kind: opBad, f: [6]topics.Raw{topics.Raw(what)}} }

func (o *op) read(object topics.Raw, names ...string) {
	if object == nil {
		return
	}
	for name, value := range members(object) {
		for i, n := range names {
			if name == n {
				o.f[i] = value
			}
		}
	}
}
