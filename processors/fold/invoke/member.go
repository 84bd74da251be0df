package invoke

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// member returns an object's member; nil if it is absent or null, or if the value is not an object.
func member(object topics.Raw, name string) topics.Raw {
	value, ok := field(object, name)
	if !ok || string(value) == "null" {
		return nil
	}
	return value
}

// field returns an object's member, unchanged; ok is false if it is absent.
func field(object topics.Raw, name string) (value topics.Raw, ok bool) {
	raw, ok := topics.Lookup(object, name)
	if ok && raw == nil {
		return topics.Raw("null"), true
	}
	return raw, ok
}

// elementsOf returns the elements of an array; nil if the value is not an array.
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

// text returns the text of a JSON string; ok is false for other values. A lone surrogate becomes U+FFFD.
func text(value topics.Raw) (s string, ok bool) {
	if kindOf(value) != '"' {
		return "", false
	}
	unquoted, _ := jsontext.AppendUnquote(nil, value) // the error reports lone surrogates, which were replaced
	return string(unquoted), true
}

// quote returns a text as a JSON string.
func quote(s string) topics.Raw {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports invalid UTF-8, which was replaced
	return b
}

// object is a compact JSON object under construction. A member with a nil value is left out.
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

// nonEmpty adds a text, unless it is empty.
func (o object) nonEmpty(name, value string) object {
	if value == "" {
		return o
	}
	return o.text(name, value)
}

func (o object) value() topics.Raw { return topics.Raw(append(o, '}')) }
