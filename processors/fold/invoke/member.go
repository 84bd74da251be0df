package invoke

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// member is an object's member; nil where it is absent, null, or the value is no object.
func member(object jsontext.Value, name string) jsontext.Value {
	value, ok := field(object, name)
	if !ok || string(value) == "null" {
		return nil
	}
	return value
}

// field is an object's member as it came; ok tells absent from null.
func field(object jsontext.Value, name string) (value jsontext.Value, ok bool) {
	raw, ok := topics.Lookup(topics.Raw(object), name)
	if ok && raw == nil {
		return jsontext.Value("null"), true
	}
	return jsontext.Value(raw), ok
}

// elementsOf are the elements of an array, null ones as null; nil for what is no array.
func elementsOf(array jsontext.Value) []jsontext.Value {
	if array.Kind() != '[' {
		return nil
	}
	raw, err := topics.Elements(topics.Raw(array))
	if err != nil {
		return nil
	}
	list := make([]jsontext.Value, len(raw))
	for i, r := range raw {
		if list[i] = jsontext.Value(r); r == nil {
			list[i] = jsontext.Value("null")
		}
	}
	return list
}

// text is a JSON string's text; ok is false for what is none. A lone surrogate is U+FFFD.
func text(value jsontext.Value) (s string, ok bool) {
	if value.Kind() != '"' {
		return "", false
	}
	unquoted, _ := jsontext.AppendUnquote(nil, value) // the error reports what was replaced
	return string(unquoted), true
}

// quote is a text as a JSON string.
func quote(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports what was replaced
	return b
}

// object is a compact JSON object of names and values; a nil value leaves its member out.
type object []byte

func newObject() object { return object{'{'} }

func (o object) with(name string, value jsontext.Value) object {
	if value == nil {
		return o
	}
	if len(o) > 1 {
		o = append(o, ',')
	}
	o = append(append(o, quote(name)...), ':')
	return append(o, value...)
}

func (o object) text(name, value string) object { return o.with(name, quote(value)) }

// some is text, left out where it is empty.
func (o object) some(name, value string) object {
	if value == "" {
		return o
	}
	return o.text(name, value)
}

func (o object) value() jsontext.Value { return jsontext.Value(append(o, '}')) }
