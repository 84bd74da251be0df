package bridge

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Fields are the members of a JSON object under construction. The zero value is an object without members.
type Fields []byte

// Text adds a string.
func (f Fields) Text(name, value string) Fields { return append(f.name(name), Text(value)...) }

// Value adds a JSON value unchanged. A nil value is left out.
func (f Fields) Value(name string, value topics.Raw) Fields {
	if len(value) == 0 {
		return f
	}
	return append(f.name(name), value...)
}

// Flag adds a boolean.
func (f Fields) Flag(name string, value bool) Fields { return strconv.AppendBool(f.name(name), value) }

func (f Fields) name(name string) Fields { return append(append(append(f, ','), Text(name)...), ':') }

// Object returns the object.
func (f Fields) Object() topics.Raw {
	if len(f) == 0 {
		return topics.Raw("{}")
	}
	return append(append([]byte{'{'}, f[1:]...), '}')
}

// Text returns a string as JSON. Invalid UTF-8 becomes U+FFFD.
func Text(s string) topics.Raw {
	quoted, _ := jsontext.AppendQuote(nil, s)
	return quoted
}

// Get returns the member of an object, or of nested objects, at the path names; nil if it is absent or null.
func Get(object topics.Raw, names ...string) topics.Raw {
	for _, name := range names {
		object, _ = topics.Lookup(object, name)
	}
	return object
}

// String returns the text of a JSON string; empty for any other value.
func String(v topics.Raw) string {
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// Elements returns the elements of an array that are not null; nil for any other value.
func Elements(array topics.Raw) []topics.Raw {
	if jsontext.Value(array).Kind() != '[' {
		return nil
	}
	all, _ := topics.Elements(bytes.TrimSpace(array))
	var some []topics.Raw
	for _, e := range all {
		if e != nil {
			some = append(some, e)
		}
	}
	return some
}
