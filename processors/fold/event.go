package fold

import "github.com/go-json-experiment/json/jsontext"

// Event is one event of the canonical vocabulary. Its values alias the bytes it was decoded from, which must not be
// changed as long as the event is used; whatever keeps an event longer copies them.
type Event struct {
	// Type is the event's type, empty if it has none: nobody folds or forwards such an event.
	Type string

	raw  jsontext.Value
	data jsontext.Value
	flat bool
}

// DecodeEvent reads an event in either encoding (R50): wrapped, {"type":T,"data":{...}}, or flat, its fields beside
// its type. It fails with ErrSyntax for what is no JSON, ErrDepth for what nests deeper than MaxDepth, and ErrMalformed
// for JSON that is no object.
func DecodeEvent(raw jsontext.Value) (Event, error) { return Event{raw: raw}, nil }

// NewEvent is the event of a type with the given data, an object.
func NewEvent(kind string, data jsontext.Value) (Event, error) { return Event{Type: kind, data: data}, nil }

// Done is the event that ends a turn with a stop reason, a JSON value; as the corrective done that a stream appends
// when its terminal result names another reason than its events, it has neither type nor trace id inside.
func Done(stopReason jsontext.Value) Event { return Event{Type: "done"} }

// Data is what fold reads of the event: the value of data if it is wrapped, the event itself if it is flat; nil if it is
// absent or falsy as Python has it (null, false, 0, "", [], {}).
func (e Event) Data() jsontext.Value { return e.data }

// Field is a member of the event's data as it came (null is null); ok tells whether there is one.
func (e Event) Field(name string) (value jsontext.Value, ok bool) { return nil, false }

// AppendJSON appends the canonical, wrapped form: a wrapped event as it came, a flat one byte for byte as the data of
// its type.
func (e Event) AppendJSON(dst []byte) []byte { return append(dst, e.raw...) }

// Wrapped is what AppendJSON appends.
func (e Event) Wrapped() jsontext.Value { return e.AppendJSON(nil) }
