package invoke

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// member is an object's member; nil where it is absent, null, or the value is no object.
func member(object topics.Raw, name string) topics.Raw {
	value, ok := field(object, name)
	if !ok || string(value) == "null" {
		return nil
	}
	return value
}

// field is an object's member as it came; ok tells absent from null.
func field(object topics.Raw, name string) (value topics.Raw, ok bool) {
	raw, ok := topics.Lookup(object, name)
	if ok && raw == nil {
		return topics.Raw("null"), true
	}
	return raw, ok
}

// elementsOf are the elements of an array, null ones as null; nil for what is no array.
func elementsOf(array topics.Raw) []topics.Raw {
	if kindOf(array) != '[' {
		return nil
	}
	raw, err := topics.Elements(array)
	if err != nil {
		return nil
	}
	list := make([]topics.Raw, len(raw))
	for i, r := range raw {
		if list[i] = r; r == nil {
			list[i] = topics.Raw("null")
		}
	}
	return list
}

// text is a JSON string's text; ok is false for what is none. A lone surrogate is U+FFFD.
func text(value topics.Raw) (s string, ok bool) {
	if kindOf(value) != '"' {
		return "", false
	}
	unquoted, _ := jsontext.AppendUnquote(nil, value) // the error reports what was replaced
	return string(unquoted), true
}

// quote is a text as a JSON string.
func quote(s string) topics.Raw {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports what was replaced
	return b
}

// object is a compact JSON object of names and values; a nil value leaves its member out.
type object []byte

func newObject() object { return object{'{'} }

func (o object) with(name string, value topics.Raw) object {
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

func (o object) value() topics.Raw { return topics.Raw(append(o, '}')) }
