package folder

import "github.com/turntable-streams/turntable/topics"

// op is the operation that an event performs on a folder. Folder and Log both use ops only, so a log folds as its events
// do.
type op struct {
	kind byte
	// The first arity(kind) fields are used; an absent field is nil. They alias the event.
	f [6]topics.Raw
}

// The kinds of ops and their fields. The letters are stored in logs: never reuse a letter for another kind.
const (
	opNone           = 0
	opMessage        = 'm' // text
	opStart          = 's' // id
	opDelta          = 'd' // id, delta without its quotes
	opNoDelta        = 'b' // id: a delta that is not a string
	opEnd            = 'x' // id
	opCall           = 'c' // id, name, input
	opResult         = 'r' // id, output, isError, data, render, denied (true or absent)
	opRequest        = 'q' // data, answered (true or absent; in snapshots only)
	opResponse       = 'p' // id
	opUsage          = 'u' // data
	opError          = 'e' // message
	opDone           = 'D' // stopReason
	opMalformed      = '!' // what is wrong with it, as text
	opMalformedCount = '#' // how many malformed events, in snapshots only
)

func arity(kind byte) int {
	switch kind {
	case opMessage, opStart, opNoDelta, opEnd, opResponse, opUsage, opError, opDone, opMalformed, opMalformedCount:
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

// opOf returns the op of an event.
func opOf(e Event) op {
	if e.Type == "message_delta" {
		return deltaOp(e)
	}
	kind := folded(e.Type)
	if kind == opNone {
		return op{}
	}
	if kind == opRequest {
		// Data that is not an object is an error only if the turn is paused at this request, which Batch checks.
		return op{kind: opRequest, f: [6]topics.Raw{e.data}}
	}
	if e.data != nil && !isObject(e.data) {
		switch kind {
		case opResponse, opUsage:
			return op{}
		case opError:
			return op{kind: opError}
		}
		return malformedOp("data is not an object")
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
		return malformedOp("id is an array or object")
	}
	return o
}

func deltaOp(e Event) op {
	switch {
	case e.data != nil && !isObject(e.data):
		return malformedOp("data is not an object")
	case !hashable(e.id):
		return malformedOp("id is an array or object")
	case e.delta == nil:
		return op{kind: opDelta, f: [6]topics.Raw{e.id, {}}}
	case !isString(e.delta):
		return op{kind: opNoDelta, f: [6]topics.Raw{e.id}}
	}
	return op{kind: opDelta, f: [6]topics.Raw{e.id, e.delta[1 : len(e.delta)-1]}}
}

// folded returns the kind of op of an event type; opNone for types that do not change a batch.
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

func malformedOp(what string) op { return op{kind: opMalformed, f: [6]topics.Raw{topics.Raw(what)}} }

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
