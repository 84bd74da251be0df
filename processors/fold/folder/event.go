package folder

import (
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Event is one event of an agent's stream. Its values alias the bytes it was decoded from: do not change these bytes
// while the event is in use.
type Event struct {
	// Type is the event's type. A type that is not a string is converted as Python's str does. It is empty if the type is
	// absent or falsy in Python; such an event is neither folded nor forwarded.
	Type string

	raw   topics.Raw // the event as received
	data  topics.Raw // the members that are folded; nil if falsy in Python
	flat  bool
	id    topics.Raw // message_delta only: the members id and delta of data, nil if absent
	delta topics.Raw
}

// DecodeEvent decodes an event in either encoding: wrapped, {"type":T,"data":{...}}, or flat, with its fields next to
// its type. It fails with ErrSyntax for bytes that are not JSON in UTF-8, with ErrDepth for data nested deeper than
// MaxDepth, and with ErrMalformed for JSON that is not an object. A lone surrogate escape is replaced by U+FFFD, except in
// the text of a delta, where the other half may follow in the next event.
func DecodeEvent(raw topics.Raw) (Event, error) { return decodeEvent(raw, false) }

// decodeEvent is DecodeEvent. With checked it skips the validation of JSON that was validated as part of an array.
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
		return Event{}, fmt.Errorf("%w: not an object", ErrMalformed)
	}
	e := Event{}
	var copied bool
	e.raw, copied = withoutLoneSurrogates(raw)
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

// restoreDelta restores the surrogates in the text of a delta from raw, the event as received.
func (e *Event) restoreDelta(raw topics.Raw) {
	received := Event{raw: raw}
	received.read()
	copy(e.delta, lookup(received.data, "delta"))
}

// read sets the type, the data and the encoding of a valid object.
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
	// An interaction_request that has only its type counts as wrapped without data, not as flat without fields. The batch
	// of a paused turn differs between the two.
	wrapped = wrapped || e.Type == "interaction_request" && !beside
	// The flat forms of two types have a member data of their own, of any kind. That of a wrapped event is an object.
	own := wrapped && !isObject(data)
	e.flat = !wrapped || e.Type == "tool_result" && (resultFields || own) || e.Type == "data" && (dataFields || own)
	switch {
	case e.flat:
		e.data = e.raw
	case !falsy(data):
		e.data = data
	}
}

// NewEvent returns a wrapped event with the given type and data. It fails as DecodeEvent does.
func NewEvent(kind string, data topics.Raw) (Event, error) {
	return DecodeEvent(appendWrapped(nil, kind, data))
}

// Done returns a done event with a stop reason, which is a JSON value. It ends a stream whose terminal result has another
// stop reason than the events. Its data has no other members. A stop reason that is not JSON is omitted.
func Done(stopReason topics.Raw) Event {
	raw := append(append([]byte(`{"type":"done","data":{"stopReason":`), orNull(stopReason)...), "}}"...)
	e, err := DecodeEvent(raw)
	if err != nil {
		e, _ = DecodeEvent(topics.Raw(`{"type":"done","data":{}}`))
	}
	return e
}

// Data returns the value of data if the event is wrapped, and the event itself if it is flat. It is nil if it is absent
// or falsy in Python (null, false, 0, "", [], {}).
func (e Event) Data() topics.Raw { return e.data }

// Flat reports whether the event was received with its fields next to its type.
func (e Event) Flat() bool { return e.flat }

// Field returns a member of the event's data, unchanged; ok is false if it is absent.
func (e Event) Field(name string) (value topics.Raw, ok bool) {
	value = lookup(e.data, name)
	return value, value != nil
}

// AppendJSON appends the event in wrapped form: a wrapped event unchanged, a flat event as the data of its type.
func (e Event) AppendJSON(dst []byte) []byte {
	if e.flat || e.raw == nil {
		return appendWrapped(dst, e.Type, e.data)
	}
	return append(dst, e.raw...)
}

// Wrapped returns the event in wrapped form, as AppendJSON appends it.
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
