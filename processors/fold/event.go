package fold

import (
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Event is one event of the canonical vocabulary. Its values alias the bytes it was decoded from, which must not be
// changed as long as the event is used; whatever keeps an event longer copies them.
type Event struct {
	// Type is the event's type, as Python prints it where it is no string; empty if it is absent or falsy: nobody folds
	// or forwards such an event.
	Type string

	raw   topics.Raw // as it came
	data  topics.Raw // what fold reads, nil if it is falsy
	flat  bool
	id    topics.Raw // of a message_delta: these two members of data as they came, nil if absent
	delta topics.Raw
}

// DecodeEvent reads an event in either encoding (R50): wrapped, {"type":T,"data":{...}}, or flat, its fields beside
// its type. It fails with ErrSyntax for what is no JSON in UTF-8, ErrDepth for data that nests deeper than MaxDepth,
// and ErrMalformed for JSON that is no object. A lone surrogate escape becomes U+FFFD, except in the text of a delta,
// whose other half may be in the next.
func DecodeEvent(raw topics.Raw) (Event, error) { return decodeEvent(raw, false) }

// decodeEvent spares the check of JSON that was checked with what it stands in.
func decodeEvent(raw topics.Raw, checked bool) (Event, error) {
	if e, ok := readDelta(raw); ok {
		return e, nil
	}
	return decodeAny(raw, checked)
}

func decodeAny(raw topics.Raw, checked bool) (Event, error) {
	raw = trimSpace(raw)
	if codec.Deeper(raw, MaxDepth+1) {
		return Event{}, ErrDepth
	}
	if !checked && (!utf8.Valid(raw) || !valid(raw)) {
		return Event{}, ErrSyntax
	}
	if !isObject(raw) {
		return Event{}, fmt.Errorf("%w: no object", ErrMalformed)
	}
	e := Event{}
	var copied bool
	e.raw, copied = mended(raw)
	e.read()
	if codec.Deeper(e.data, MaxDepth) {
		return Event{}, ErrDepth
	}
	if e.Type == "message_delta" {
		e.id, e.delta = lookup(e.data, "id"), lookup(e.data, "delta")
		if copied && isString(e.delta) {
			e.restoreDelta(raw)
		}
	}
	return e, nil
}

// restoreDelta takes back what was mended in the text of a delta: raw is the event as it came.
func (e *Event) restoreDelta(raw topics.Raw) {
	came := Event{raw: raw}
	came.read()
	copy(e.delta, lookup(came.data, "delta"))
}

// read finds the type and the data of a valid object, and tells its encoding.
func (e *Event) read() {
	var kind, data topics.Raw
	var wrapped, beside, resultFields, dataFields bool
	for name, value := range members(e.raw) {
		switch name {
		case "type":
			kind = value
		case "data":
			wrapped, data = true, value
		case "output", "isError", "denied", "render":
			beside, resultFields = true, true
		case "name":
			beside, dataFields = true, true
		default:
			beside = true
		}
	}
	e.Type = typeName(kind)
	// A request of nothing but its type is one whose data is missing, not a flat one without fields: a pause shows which.
	wrapped = wrapped || e.Type == "interaction_request" && !beside
	e.flat = !wrapped || e.Type == "tool_result" && resultFields || e.Type == "data" && dataFields
	switch {
	case e.flat:
		e.data = e.raw
	case !falsy(data):
		e.data = data
	}
}

// NewEvent is the event of a type with the given data. It fails as DecodeEvent does.
func NewEvent(kind string, data topics.Raw) (Event, error) {
	return DecodeEvent(appendWrapped(nil, kind, data))
}

// Done is the event that ends a turn with a stop reason, a JSON value; as the corrective done that a stream appends
// when its terminal result names another reason than its events, it has neither type nor trace id inside.
func Done(stopReason topics.Raw) Event {
	raw := append(append([]byte(`{"type":"done","data":{"stopReason":`), orNull(stopReason)...), "}}"...)
	e, err := DecodeEvent(raw)
	if err != nil {
		// Of what is no JSON nothing can be said but that the turn is over.
		e, _ = DecodeEvent(topics.Raw(`{"type":"done","data":{}}`))
	}
	return e
}

// Data is what fold reads of the event: the value of data if it is wrapped, the event itself if it is flat; nil if it
// is absent or falsy as Python has it (null, false, 0, "", [], {}).
func (e Event) Data() topics.Raw { return e.data }

// Flat reports whether the event came with its fields beside its type.
func (e Event) Flat() bool { return e.flat }

// Field is a member of the event's data as it came (null is null); ok tells whether there is one.
func (e Event) Field(name string) (value topics.Raw, ok bool) {
	value = lookup(e.data, name)
	return value, value != nil
}

// AppendJSON appends the canonical, wrapped form: a wrapped event as it came, a flat one byte for byte as the data of
// its type.
func (e Event) AppendJSON(dst []byte) []byte {
	if e.flat || e.raw == nil {
		return appendWrapped(dst, e.Type, e.data)
	}
	return append(dst, e.raw...)
}

// Wrapped is what AppendJSON appends.
func (e Event) Wrapped() topics.Raw { return e.AppendJSON(nil) }

func appendWrapped(dst []byte, kind string, data topics.Raw) []byte {
	dst = append(dst, `{"type":`...)
	dst, _ = jsontext.AppendQuote(dst, kind)
	dst = append(dst, `,"data":`...)
	if len(data) == 0 {
		data = topics.Raw("{}")
	}
	return append(append(dst, data...), '}')
}

func orNull(v topics.Raw) topics.Raw {
	if len(v) == 0 {
		return topics.Raw("null")
	}
	return v
}
